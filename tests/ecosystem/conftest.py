"""Trainers run on CPUs and on one thread here, so that a run repeats to the last bit."""

from __future__ import annotations

import os

# Before PyTorch is loaded: a driver on this machine must not lead it to CUDA (see install.py).
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
