"""Trainers run on CPUs and on one thread here, so that a run repeats to the last bit."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Before PyTorch is loaded: a driver on this machine must not lead it to CUDA (see install.py).
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# The trainers there are scripts; they are tested here because they need PyTorch.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "agents" / "python"))

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
