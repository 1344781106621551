"""The stable-baselines3 adapter; skipped where stable-baselines3 is not installed."""

from __future__ import annotations

import doctest
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs oncall-gym[sb3]")

from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

import oncall_gym.sb3
from oncall_gym import OncallVectorEnv, OptionError, OrderError
from oncall_gym.sb3 import OncallSb3VecEnv, make_sb3

N = 5


def actions_of(env: OncallSb3VecEnv, count: int, seed: int = 0) -> list[Any]:
    space = gymnasium.vector.utils.batch_space(env.action_space, env.num_envs)
    space.seed(seed)
    return [space.sample() for _ in range(count)]


def test_steps_are_those_of_the_vector_environment() -> None:
    adapter = make_sb3("oncall/Spike-v0", N, seed=3, max_minutes=20)
    seeds = adapter.seed(3)
    plain = OncallVectorEnv("spike", N, autoreset_mode="same_step", max_minutes=20)
    first, _ = plain.reset(seed=list(seeds))
    assert np.array_equal(adapter.reset(), first)
    assert [info["seed"] for info in adapter.reset_infos] == list(seeds)
    ends = 0
    for action in actions_of(adapter, 45):
        obs, rewards, terminated, truncated, infos = plain.step(action)
        seen, paid, dones, rows = adapter.step(action)
        assert np.array_equal(seen, obs)
        assert np.array_equal(paid, rewards.astype(np.float32))
        assert paid.dtype == np.float32
        assert np.array_equal(dones, terminated | truncated)
        for row in range(N):
            if not dones[row]:
                assert rows[row] == {}
                continue
            ends += 1
            assert np.array_equal(rows[row]["terminal_observation"], infos["final_obs"][row])
            assert rows[row]["TimeLimit.truncated"] is bool(truncated[row])
            sums = infos["final_info"]["oncall"]
            assert rows[row]["episode"]["r"] == sums["return_usd"][row]
            assert rows[row]["episode"]["l"] == sums["steps"][row] == 20
            assert rows[row]["oncall"]["budget_burned"] == sums["budget_burned"][row]
    assert ends == 2 * N


def test_seeds_repeat_and_neighbours_do_not_overlap() -> None:
    env = make_sb3("spike", N)
    seven, eight = set(env.seed(7)), set(env.seed(8))
    assert len(seven) == N
    assert not seven & eight
    assert set(env.seed(7)) == seven
    env.reset()
    assert {info["seed"] for info in env.reset_infos} == seven
    env.reset()
    assert [info["episode_number"] for info in env.reset_infos] == [1] * N


def test_infos_written_into_do_not_come_back() -> None:
    env = make_sb3("steady", N, seed=1)
    env.reset()
    first, second, third = (env.step(action)[3] for action in actions_of(env, 3))
    assert all(a is b for a, b in zip(first, second, strict=True))
    third[2]["mine"] = 1
    (after,) = (env.step(action)[3] for action in actions_of(env, 1))
    assert after == [{}] * N
    assert third[2] == {"mine": 1}


def test_infos_that_were_asked_for_are_there() -> None:
    env = make_sb3("steady", N, seed=1, cost_info=True, info="signals", max_minutes=2)
    env.reset()
    one, two = actions_of(env, 2)
    rows = env.step(one)[3]
    assert set(rows[0]) == {"cost", "signals", "terms"}
    assert rows[0]["signals"]["serving"] >= 1
    assert isinstance(rows[0]["cost"], float)
    rows = env.step(two)[3]
    assert set(rows[0]) >= {"cost", "signals", "terminal_observation", "episode"}


def test_attributes_and_methods() -> None:
    env = make_sb3("steady", N, seed=1)
    assert env.get_attr("action_mode") == ["multi_discrete"] * N
    assert env.get_attr("num_envs", indices=[0, 2]) == [N, N]
    with pytest.raises(AttributeError):
        env.get_attr("nonsense")
    assert not env.has_attr("nonsense")
    env.set_attr("note", "hello")
    assert env.get_attr("note", indices=1) == ["hello"]
    with pytest.raises(OptionError, match="indices"):
        env.set_attr("note", "hello", indices=[0])
    env.reset()
    assert len(env.env_method("get_state", indices=[0])[0]) == N
    assert env.env_is_wrapped(Monitor) == [True] * N
    assert env.env_is_wrapped(gymnasium.wrappers.TimeLimit) == [False] * N
    env.close()
    env.close()


def test_wrong_environments_and_calls_are_refused() -> None:
    with pytest.raises(OptionError, match="SAME_STEP"):
        OncallSb3VecEnv(OncallVectorEnv("steady", 2))
    with pytest.raises(OptionError, match=r"env\.copy"):
        OncallSb3VecEnv(OncallVectorEnv("steady", 2, autoreset_mode="same_step", copy=False))
    with pytest.raises(OptionError, match="expected an OncallVectorEnv"):
        OncallSb3VecEnv(gymnasium.make("oncall/Steady-v0"))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="action_mode"):
        make_sb3("steady", 2, action_mode="dict")
    with pytest.raises(OptionError, match="reward_space"):
        make_sb3("steady", 2, reward_terms=True)
    with pytest.raises(OptionError, match="autoreset_mode"):
        make_sb3("steady", 2, autoreset_mode="disabled")
    env = make_sb3("steady", 2, seed=0)
    with pytest.raises(OrderError, match="step_async"):
        env.step_wait()
    env.set_options([{"a": 1}, {}])
    with pytest.raises(OptionError, match="same for all"):
        env.reset()


def test_wrappers_of_stable_baselines3_work() -> None:
    env = VecNormalize(VecFrameStack(make_sb3("spike", N, seed=2, max_minutes=6), 3))
    observation = env.reset()
    assert observation.shape == (N, 3 * make_sb3("spike").observation_space.shape[0])
    ended = 0
    for action in actions_of(make_sb3("spike", N), 13):
        observation, _, dones, infos = env.step(action)
        assert np.isfinite(observation).all()
        ended += int(dones.sum())
        assert all(
            ("terminal_observation" in info) == done
            for info, done in zip(infos, dones, strict=True)
        )
    assert ended == 2 * N


def test_examples_in_docstrings() -> None:
    result = doctest.testmod(oncall_gym.sb3)
    assert (result.attempted > 0, result.failed) == (True, 0)


def test_images_are_tiled() -> None:
    pytest.importorskip("matplotlib", reason="needs oncall-gym[render]")
    env = make_sb3("steady", 2, seed=0, render_mode="rgb_array")
    env.reset()
    image = env.render()
    assert image is not None
    assert image.dtype == np.uint8
    assert image.shape == (640, 2 * 960, 3) or image.shape == (2 * 640, 960, 3)
