"""TorchRL takes the vector environment as it is, in the mode that it prefers."""

from __future__ import annotations

import gymnasium
import pytest
import torch
from torchrl.envs.libs.gym import GymWrapper
from torchrl.envs.utils import check_env_specs

import oncall_gym

MINUTES = 5


@pytest.mark.parametrize("action_mode", ["multi_discrete", "box"])
def test_specs_and_rollout(action_mode: str) -> None:
    plain = gymnasium.make_vec(
        "oncall/Spike-v0",
        num_envs=3,
        action_mode=action_mode,
        autoreset_mode="disabled",
        max_minutes=MINUTES,
    )
    assert isinstance(plain, oncall_gym.OncallVectorEnv)
    env = GymWrapper(plain)
    env.set_seed(3)
    check_env_specs(env)
    steps = 2 * MINUTES
    rollout = env.rollout(steps, break_when_any_done=False)
    assert rollout.batch_size == (3, steps)
    truncated = rollout["next", "truncated"][..., 0]
    assert truncated.sum().item() == 2 * 3
    assert truncated[:, MINUTES - 1].all()
    # The row after an end begins with the observation of a reset, not with the final one.
    final = rollout["next", "observation"][:, MINUTES - 1]
    begun = rollout["observation"][:, MINUTES]
    assert not torch.equal(final, begun)
    assert torch.isfinite(rollout["next", "reward"]).all()
