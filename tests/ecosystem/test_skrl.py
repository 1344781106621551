"""skrl takes the vector environment as it is."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from skrl.envs.wrappers.torch import wrap_env

import oncall_gym

MINUTES = 5


@pytest.mark.parametrize("action_mode", ["multi_discrete", "box"])
def test_wrapped_steps(action_mode: str) -> None:
    plain = gymnasium.make_vec(
        "oncall/Spike-v0",
        num_envs=4,
        action_mode=action_mode,
        max_minutes=MINUTES,
        render_mode="ansi",
    )
    assert isinstance(plain, oncall_gym.OncallVectorEnv)
    env = wrap_env(plain)
    assert env.num_envs == 4
    observation, _ = env.reset()
    assert observation.shape == (4, *plain.single_observation_space.shape)
    env.action_space.seed(0)
    ends = []
    for _ in range(2 * MINUTES + 2):
        actions = np.stack([env.action_space.sample() for _ in range(4)])
        observation, reward, terminated, truncated, _ = env.step(torch.as_tensor(actions))
        assert reward.shape == (4, 1)
        assert torch.isfinite(observation).all()
        assert not terminated.any()
        ends.append(bool(truncated.all()))
    # Next-step mode: one step after each end only begins the next episode.
    assert [step for step, ended in enumerate(ends) if ended] == [4, 10]
    assert len(env.render()) == 4
    env.close()
