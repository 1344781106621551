"""Gymnasium's contract: its checker, its wrappers, spaces and infos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers import vector as vector_wrappers

import oncall_gym
from conftest import ACTION_MODES, AUTORESET, SHORT, VIEWS, keep


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("mode", ACTION_MODES)
@pytest.mark.parametrize("env_id", oncall_gym.IDS)
def test_gymnasium_finds_nothing(env_id: str, mode: str, view: str) -> None:
    env = gymnasium.make(env_id, action_mode=mode, observation=view)
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("render_mode", ["ansi", "rgb_array"])
def test_gymnasium_finds_nothing_in_the_dashboard(render_mode: str) -> None:
    pytest.importorskip("matplotlib")
    env = gymnasium.make("oncall/Spike-v0", render_mode=render_mode)
    check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize("autoreset", AUTORESET)
@pytest.mark.parametrize("mode", ACTION_MODES)
def test_the_vector_checker_finds_nothing(mode: str, autoreset: str) -> None:
    def factory() -> Any:
        return oncall_gym.OncallVectorEnv(
            SHORT, 3, action_mode=mode, autoreset_mode=autoreset, max_minutes=4
        )

    oncall_gym.check_vector_env(factory)


def test_spaces_and_attributes() -> None:
    env = oncall_gym.OncallVectorEnv("spike", 4, autoreset_mode="same_step")
    assert env.observation_space == batch_space(env.single_observation_space, 4)
    assert env.action_space == batch_space(env.single_action_space, 4)
    assert env.single_action_space.nvec.tolist() == [14, 3, 8, 13, 2, 6, 3, 2]
    assert env.autoreset_mode is AutoresetMode.SAME_STEP
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert oncall_gym.OncallVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert set(env.metadata["render_modes"]) == {"ansi", "rgb_array"}
    assert env.metadata["render_fps"] > 0
    observation, _ = env.reset(seed=1)
    assert observation.dtype == np.float32
    assert observation in env.observation_space
    _, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
    assert rewards.dtype == np.float64
    assert terminated.dtype == truncated.dtype == np.bool_


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_every_whole_dtype_of_stops_is_taken(dtype: type) -> None:
    env = oncall_gym.OncallVectorEnv("spike", 2)
    env.reset(seed=1)
    actions = env.action_space.sample()
    expected = env.step(actions)[1]
    env.reset(seed=1)
    assert env.step(actions.astype(dtype))[1].tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_dtypes_of_the_box_are_taken(dtype: type) -> None:
    env = oncall_gym.OncallVectorEnv("spike", 2, action_mode="box")
    env.reset(seed=1)
    env.step(env.action_space.sample().astype(dtype))


EXTREMES: dict[str, dict[str, Any]] = {
    "a surge of fifty times": {"surges": [{"start_min": 3, "size": 49, "rise_min": 2}]},
    "no demand": {"demand": {"base_rps": 0}},
    "one instance": {"opening": {"serving": 1, "min_instances": 1, "autoscale": False}},
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", EXTREMES)
def test_observations_stay_inside_their_space(name: str, view: str, actions: Any) -> None:
    scenario = {**SHORT, **EXTREMES[name], "shift": {"length_min": 240}}
    env = oncall_gym.OncallVectorEnv(scenario, 16, observation=view, info="signals")
    observation, infos = env.reset(seed=1)
    for action in actions(env, 250):
        assert np.isfinite(observation).all()
        assert observation in env.observation_space
        assert all(
            np.isfinite(infos["signals"][name]).all() for name in env.world_spec.signal_names
        )
        observation, rewards, *_, infos = env.step(action)
        assert np.isfinite(rewards).all()


def test_an_ordinary_step_has_no_info() -> None:
    env = oncall_gym.OncallVectorEnv(SHORT, 3)
    env.reset(seed=1)
    infos = [env.step(keep(env))[4] for _ in range(6)]
    assert [sorted(info) for info in infos[:4]] == [[]] * 4
    assert sorted(infos[4]) == ["_oncall", "oncall"]
    assert sorted(infos[5]) == [
        "_episode_number",
        "_seed",
        "_valid",
        "episode_number",
        "seed",
        "valid",
    ]


def test_sums_of_an_episode_are_those_of_its_steps() -> None:
    env = oncall_gym.OncallVectorEnv(SHORT, 3, cost_info=True, info="signals")
    env.reset(seed=1)
    rewards, costs, terms = np.zeros(3), np.zeros(3), {}
    for _ in range(5):
        _, reward, _, truncated, infos = env.step(keep(env))
        rewards += reward
        costs += infos["cost"]
        total = np.zeros(3)
        for name in env.world_spec.term_names:
            dollars = infos["terms"][name]
            terms[name] = terms.get(name, 0) + dollars
            total += dollars
        assert (total + reward == 0).all()
    assert truncated.all()
    sums = infos["oncall"]
    assert sums["return_usd"].tolist() == rewards.tolist()
    assert sums["budget_burned"] == pytest.approx(costs, rel=1e-9, abs=1e-15)
    assert sums["steps"].tolist() == sums["minutes"].tolist() == [5] * 3
    for name, dollars in terms.items():
        assert sums[name].tolist() == dollars.tolist()
    assert infos["signals"]["shift_min"].tolist() == [5.0] * 3


@pytest.mark.parametrize("copy", [True, False])
def test_vector_rewards(copy: bool) -> None:
    plain = oncall_gym.OncallVectorEnv("spike", 3, copy=copy)
    env = oncall_gym.OncallVectorEnv("spike", 3, reward_terms=True, copy=copy, info="signals")
    single = oncall_gym.OncallEnv("spike", reward_terms=True)
    plain.reset(seed=[1, 2, 3])
    env.reset(seed=[1, 2, 3])
    single.reset(seed=1)
    for _ in range(3):
        scalar = plain.step(keep(plain))[1]
        _, rewards, *_, infos = env.step(keep(env))
        assert rewards.shape == (3, 6)
        assert rewards in env.reward_space
        assert rewards.sum(1) == pytest.approx(scalar, rel=1e-12)
        for i, name in enumerate(env.world_spec.term_names):
            assert (rewards[:, i] == -infos["terms"][name]).all()
        row = single.step(keep(single))[1]
        assert row in single.reward_space
        assert row.tolist() == rewards[0].tolist()


def test_arrays_are_new_unless_copy_is_off() -> None:
    for copy in (True, False):
        env = oncall_gym.OncallVectorEnv("spike", 2, copy=copy)
        first = [env.reset(seed=1)[0], *env.step(keep(env))[:4]]
        second = env.step(keep(env))[:4]
        shared = [np.shares_memory(a, b) for a, b in zip(first[1:], second, strict=True)]
        assert shared == [not copy] * 4


def test_natural_units_come_back() -> None:
    env = oncall_gym.OncallVectorEnv("spike", 3)
    observation, _ = env.reset(seed=1)
    natural, truth = env.natural(observation), env.signals()
    assert list(natural) == list(env.world_spec.observation)
    for name in ("offered_rps", "p99_ms", "utilization", "dial_cache_ttl_s"):
        assert natural[name] == pytest.approx(truth[name], rel=1e-5, abs=1e-6)
    assert natural["serving"].tolist() == [10.0] * 3
    assert env.natural(observation[1])["offered_rps"] == natural["offered_rps"][1]


def _roll(env: Any, steps: int = 12) -> list[Any]:
    env.reset(seed=3)
    env.action_space.seed(3)
    return [env.step(env.action_space.sample()) for _ in range(steps)]


SINGLE = {
    "RecordEpisodeStatistics": lambda env: wrappers.RecordEpisodeStatistics(env),
    "NormalizeObservation": lambda env: wrappers.NormalizeObservation(env),
    "NormalizeReward": lambda env: wrappers.NormalizeReward(env),
    "FrameStackObservation": lambda env: wrappers.FrameStackObservation(env, 4),
    "TransformReward": lambda env: wrappers.TransformReward(env, lambda reward: reward / 10),
    "FlattenObservation": lambda env: wrappers.FlattenObservation(env),
}


@pytest.mark.parametrize("name", SINGLE)
def test_wrappers_of_single_environments(name: str) -> None:
    env = SINGLE[name](gymnasium.make("oncall/Fleet-v0", scenario=SHORT))
    _roll(env, 5)
    with pytest.raises(oncall_gym.OrderError, match="over"):
        env.step(env.action_space.sample())
    env.close()


def test_statistics_of_a_wrapper_agree_with_ours() -> None:
    env = wrappers.RecordEpisodeStatistics(gymnasium.make("oncall/Fleet-v0", scenario=SHORT))
    info = _roll(env, 5)[-1][4]
    assert info["episode"]["r"] == pytest.approx(info["oncall"]["return_usd"])
    assert info["episode"]["l"] == info["oncall"]["steps"] == 5


VECTOR = {
    "RecordEpisodeStatistics": lambda env: vector_wrappers.RecordEpisodeStatistics(env),
    "NormalizeReward": lambda env: vector_wrappers.NormalizeReward(env),
    "ClipReward": lambda env: vector_wrappers.ClipReward(env, -1, 1),
    "TransformReward": lambda env: vector_wrappers.TransformReward(env, lambda reward: reward / 10),
    "DictInfoToList": lambda env: vector_wrappers.DictInfoToList(env),
    "FlattenObservation": lambda env: vector_wrappers.FlattenObservation(env),
    "NormalizeObservation": lambda env: vector_wrappers.NormalizeObservation(env),
}

#: Gymnasium refuses these itself, whatever the environment.
REFUSED = {
    ("FlattenObservation", "same_step"),
    ("NormalizeObservation", "same_step"),
    ("NormalizeObservation", "disabled"),
}


@pytest.mark.parametrize("autoreset", AUTORESET)
@pytest.mark.parametrize("name", VECTOR)
def test_wrappers_of_vector_environments(name: str, autoreset: str) -> None:
    env = gymnasium.make_vec(
        "oncall/Fleet-v0",
        num_envs=3,
        scenario=SHORT,
        autoreset_mode=autoreset,
        info="signals",
        cost_info=True,
    )
    if (name, autoreset) in REFUSED:
        with pytest.raises((ValueError, AssertionError)):
            VECTOR[name](env)
        return
    wrapped = VECTOR[name](env)
    _roll(wrapped, 5 if autoreset == "disabled" else 17)
    wrapped.close()


@pytest.mark.parametrize("autoreset", AUTORESET)
def test_vector_statistics_of_a_wrapper_agree_with_ours(autoreset: str) -> None:
    env = oncall_gym.OncallVectorEnv(SHORT, 3, autoreset_mode=autoreset)
    wrapped = vector_wrappers.RecordEpisodeStatistics(env)
    info = _roll(wrapped, 5)[-1][4]
    ours = info["final_info"]["oncall"] if autoreset == "same_step" else info["oncall"]
    assert info["episode"]["r"] == pytest.approx(ours["return_usd"])
    assert info["episode"]["l"].tolist() == ours["steps"].tolist()


def test_videos(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("moviepy")
    env = gymnasium.make("oncall/Fleet-v0", scenario=SHORT, render_mode="rgb_array")
    env = wrappers.RecordVideo(env, str(tmp_path / "single"), disable_logger=True)
    _roll(env, 5)
    env.close()
    envs = gymnasium.make_vec(
        "oncall/Fleet-v0", num_envs=2, scenario=SHORT, render_mode="rgb_array"
    )
    envs = vector_wrappers.RecordVideo(envs, str(tmp_path / "vector"))
    _roll(envs, 7)
    envs.close()
    for folder in ("single", "vector"):
        assert list((tmp_path / folder).glob("*.mp4"))
