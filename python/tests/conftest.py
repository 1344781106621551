"""What the tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oncall_gym

AUTORESET = ["next_step", "same_step", "disabled"]
ACTION_MODES = ["multi_discrete", "box", "dict"]
VIEWS = ["operator", "full"]

#: A scenario of its own, short enough that episodes end within a few steps.
SHORT: dict[str, Any] = {
    "schema_version": 1,
    "world": "fleet",
    "name": "short",
    "shift": {"length_min": 5},
    "demand": {"base_rps": {"uniform": [800, 1200]}},
}


@pytest.fixture
def actions() -> Any:
    """Draws seeded batches of actions: `actions(env, count)`."""

    def draw(env: Any, count: int, seed: int = 5) -> list[Any]:
        env.action_space.seed(seed)
        return [env.action_space.sample() for _ in range(count)]

    return draw


def keep(env: Any) -> Any:
    """The multi-discrete action that keeps every dial, for every row or for the single one."""
    return np.zeros(env.action_space.shape, np.int64)


def digests(env: oncall_gym.OncallVectorEnv) -> list[int]:
    """What every row's future depends on."""
    return [env.digest(row) for row in range(env.num_envs)]


def trace(env: Any, actions: list[Any], **reset: Any) -> list[Any]:
    """All observations, rewards and flags of a run."""
    observation, _ = env.reset(**reset)
    seen = [observation.copy()]
    for action in actions:
        *arrays, _ = env.step(action)
        seen.extend(np.array(array) for array in arrays)
    return seen


def same(one: list[Any], other: list[Any]) -> bool:
    """Whether two runs are equal to the bit."""
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True)
    )
