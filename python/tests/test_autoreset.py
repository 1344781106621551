"""What a step does when an episode ends, one table for each mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oncall_gym
from conftest import SHORT, digests, keep
from oncall_gym import OncallVectorEnv, OrderError

LENGTH = SHORT["shift"]["length_min"]


def make(mode: str, **kwargs: Any) -> OncallVectorEnv:
    return OncallVectorEnv(SHORT, 3, autoreset_mode=mode, **kwargs)


def first_observations(env: OncallVectorEnv, episode: int) -> np.ndarray:
    """What the rows show at the beginning of an episode, each played alone."""
    rows = []
    for seed in env.row_info()["seed"]:
        single = oncall_gym.OncallEnv(SHORT)
        observation, _ = single.reset(seed=int(seed))
        for _ in range(episode):
            observation, _ = single.reset()
        rows.append(observation)
    return np.stack(rows)


def play_to_the_end(env: OncallVectorEnv) -> tuple[Any, ...]:
    env.reset(seed=1)
    for _ in range(LENGTH - 1):
        *_, terminated, truncated, infos = env.step(keep(env))
        assert not terminated.any()
        assert not truncated.any()
        assert infos == {}
    return env.step(keep(env))


def last_observations() -> np.ndarray:
    """What the rows show at the end of their first episode."""
    return play_to_the_end(make("disabled"))[0]


def test_next_step() -> None:
    env = make("next_step")
    observation, rewards, terminated, truncated, infos = play_to_the_end(env)
    assert (observation == last_observations()).all()
    assert truncated.all()
    assert not terminated.any()
    assert (rewards < 0).all()
    assert infos["_oncall"].all()
    assert "final_obs" not in infos
    assert env.row_info()["pending"].all()

    # The action of the wasted slot is ignored, whatever it is.
    observation, rewards, terminated, truncated, infos = env.step(env.action_space.sample())
    assert (observation == first_observations(env, episode=1)).all()
    assert rewards.tolist() == [0.0] * 3
    assert not terminated.any()
    assert not truncated.any()
    assert infos["valid"].tolist() == [False] * 3
    assert infos["episode_number"].tolist() == [1] * 3
    assert infos["seed"].tolist() == env.row_info()["seed"].tolist()
    assert env.step(keep(env))[4] == {}


def test_same_step() -> None:
    env = make("same_step")
    observation, rewards, terminated, truncated, infos = play_to_the_end(env)
    assert (observation == first_observations(env, episode=1)).all()
    assert (infos["final_obs"] == last_observations()).all()
    assert isinstance(infos["final_obs"], np.ndarray)
    assert infos["final_obs"].dtype == np.float32
    assert infos["_final_obs"].tolist() == [True] * 3
    assert truncated.all()
    assert not terminated.any()
    assert infos["final_info"]["oncall"]["return_usd"].shape == (3,)
    assert infos["final_info"]["oncall"]["episode_number"].tolist() == [0] * 3
    assert infos["episode_number"].tolist() == [1] * 3
    assert "valid" not in infos
    assert (rewards < 0).all()
    # No slot is wasted: the next end is exactly one episode later.
    ends = [env.step(keep(env))[3].all() for _ in range(LENGTH)]
    assert ends == [False] * (LENGTH - 1) + [True]


def test_disabled() -> None:
    env = make("disabled")
    observation, _, terminated, truncated, infos = play_to_the_end(env)
    assert (observation == last_observations()).all()
    assert truncated.all()
    assert not terminated.any()
    assert infos["_oncall"].all()
    before = digests(env)
    with pytest.raises(OrderError, match="rows 0, 1, 2"):
        env.step(keep(env))
    assert digests(env) == before

    mask = np.array([True, False, True])
    after, infos = env.reset(options={"reset_mask": mask})
    assert (after[1] == observation[1]).all()
    assert (after[[0, 2]] == first_observations(env, episode=1)[[0, 2]]).all()
    assert infos["_seed"].tolist() == mask.tolist()
    assert infos["episode_number"].tolist() == [1, 0, 1]
    assert digests(env)[1] == before[1]
    with pytest.raises(OrderError, match="row 1"):
        env.step(keep(env))
    env.reset(options={"reset_mask": ~mask})
    env.step(keep(env))


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_rows_end_each_at_its_own_time(mode: str) -> None:
    env = make(mode)
    env.reset(seed=1)
    env.step(keep(env))
    env.step(keep(env))
    env.reset(options={"reset_mask": np.array([False, True, False])})
    for _ in range(LENGTH - 3):
        env.step(keep(env))
    *_, truncated, infos = env.step(keep(env))
    assert truncated.tolist() == [True, False, True]
    sums = infos["final_info"]["oncall"] if mode == "same_step" else infos["oncall"]
    assert (sums["return_usd"] != 0).tolist() == [True, False, True]
    assert sums["steps"].tolist() == [LENGTH, 0, LENGTH]
    if mode == "same_step":
        assert infos["_final_obs"].tolist() == [True, False, True]
        assert (infos["final_obs"][1] == 0).all()
    if mode == "next_step":
        *_, infos = env.step(keep(env))
        assert infos["valid"].tolist() == [False, True, False]
        assert infos["_seed"].tolist() == [True, False, True]


def test_options_and_masks_are_never_changed() -> None:
    env = make("disabled")
    env.reset(seed=1)
    mask = np.array([True, False, False])
    options = {"reset_mask": mask}
    env.reset(options=options)
    assert options == {"reset_mask": mask}
    assert mask.tolist() == [True, False, False]


def test_a_longer_decision_does_not_overrun_the_shift() -> None:
    env = make("next_step", decision_interval_min=2)
    env.reset(seed=1)
    truncated = [env.step(keep(env))[3].all() for _ in range(3)]
    assert truncated == [False, False, True]
    assert env.episode_stats()["minutes"].tolist() == [LENGTH] * 3


def test_max_minutes_may_exceed_the_scenario() -> None:
    env = make("next_step", max_minutes=2 * LENGTH)
    env.reset(seed=1)
    truncated = [env.step(keep(env))[3].all() for _ in range(2 * LENGTH)]
    assert truncated == [False] * (2 * LENGTH - 1) + [True]
