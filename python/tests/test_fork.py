"""Other processes: by fork and by spawn, also after the engine's own threads have run."""

from __future__ import annotations

import multiprocessing
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

import oncall_gym
from conftest import digests, keep

ROWS = 2048


def wake_the_threads() -> oncall_gym.OncallVectorEnv:
    """A batch big enough that the pool is made and used."""
    env = oncall_gym.OncallVectorEnv("spike", ROWS, threads=2)
    env.reset(seed=1)
    env.step(keep(env))
    return env


def make_one() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("oncall_gym:oncall/Spike-v0")


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_async_vector_environments(context: str) -> None:
    parent = wake_the_threads()
    with warnings.catch_warnings():
        # From 3.12 on Python warns of any fork beside threads; ours survive it.
        warnings.simplefilter("ignore", DeprecationWarning)
        envs = AsyncVectorEnv([make_one] * 2, context=context)
    try:
        observation, infos = envs.reset(seed=[3, 4])
        assert infos["seed"].tolist() == [3, 4]
        alone = oncall_gym.OncallVectorEnv("spike", 2)
        assert (observation == alone.reset(seed=[3, 4])[0]).all()
        envs.action_space.seed(1)
        for _ in range(5):
            action = envs.action_space.sample()
            *arrays, _ = envs.step(action)
            *expected, _ = alone.step(action)
            assert all((a == b).all() for a, b in zip(arrays, expected, strict=True))
    finally:
        envs.close()
    parent.step(keep(parent))


def _step_and_digest(env: oncall_gym.OncallVectorEnv, queue: Any) -> None:
    env.step(keep(env))
    queue.put(digests(env)[:8])


def test_a_forked_batch_steps_with_threads_of_its_own() -> None:
    env = wake_the_threads()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=_step_and_digest, args=(env, queue))
        child.start()
    found = queue.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0
    env.step(keep(env))
    assert found == digests(env)[:8]


def test_a_spawned_process_takes_a_batch_over() -> None:
    env = wake_the_threads()
    small = oncall_gym.OncallVectorEnv("spike", 8, threads=2)
    small.set_state(env.get_state(range(8)))
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_step_and_digest, args=(small, queue))
    child.start()
    found = queue.get(timeout=120)
    child.join(timeout=60)
    assert child.exitcode == 0
    small.step(np.zeros((8, 8), np.int64))
    assert found == digests(small)
