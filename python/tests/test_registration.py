"""Ids, specs, and what Gymnasium's functions make of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

import oncall_gym
from conftest import SHORT, digests, keep


def test_the_ids() -> None:
    wanted = "Spike BadBuild CacheFlush Steady Mixed SpikeHard BadBuildHard CacheFlushHard"
    names = [f"oncall/{name}-v0" for name in (wanted + " MixedHard Fleet").split()]
    discovery = "Calm RollingDeploy CrashWave NodeFailures BadHealthCheck ControlPlaneOutage"
    discovery += " ReconnectStorm RegionLoss BadRelay LeaderChange Mixed MixedHeldout"
    names += ["oncall/Discovery-v0"] + [f"oncall/Discovery{n}-v0" for n in discovery.split()]
    assert sorted(oncall_gym.IDS) == sorted(names)
    for env_id in names:
        spec = gymnasium.spec(env_id)
        assert spec.max_episode_steps is None
        assert spec.entry_point is not None
        assert spec.vector_entry_point is not None


@pytest.mark.parametrize("make", ["make", "make_vec"])
def test_the_module_in_an_id_is_imported(make: str) -> None:
    code = f"import gymnasium; print(gymnasium.{make}('oncall_gym:oncall/Spike-v0').reset(seed=1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "seed" in done.stdout


@pytest.mark.parametrize("env_id", oncall_gym.IDS)
def test_an_id_plays_its_scenario_both_ways(env_id: str) -> None:
    single = gymnasium.make(env_id)
    envs = gymnasium.make_vec(env_id, num_envs=2)
    assert isinstance(single.unwrapped, oncall_gym.OncallEnv)
    assert isinstance(envs, oncall_gym.OncallVectorEnv)
    scenario = oncall_gym.IDS[env_id] or ("calm" if "Discovery" in env_id else "steady")
    assert single.unwrapped.world_spec.scenario == envs.world_spec.scenario == scenario
    single.reset(seed=5)
    envs.reset(seed=[5, 6])
    assert single.unwrapped.digest() == envs.digest(0)


KEYWORDS: dict[str, Any] = {
    "action_mode": "box",
    "observation": "full",
    "decision_interval_min": 5,
    "autoreset_mode": "same_step",
    "split": "test",
    "threads": 2,
    "max_minutes": 60,
    "copy": False,
    "reward_terms": True,
    "cost_info": True,
    "info": "signals",
    "render_mode": "ansi",
}


def test_a_spec_rebuilds_the_same_environment() -> None:
    envs = gymnasium.make_vec("oncall/SpikeHard-v0", num_envs=3, **KEYWORDS)
    text = envs.spec.to_json()
    for spec in (envs.spec, EnvSpec.from_json(text)):
        twin = gymnasium.make_vec(spec)
        assert twin.num_envs == 3
        assert twin.spec == envs.spec
        assert twin.autoreset_mode is AutoresetMode.SAME_STEP
        for name in ("observation_space", "action_space", "reward_space", "metadata", "threads"):
            assert getattr(twin, name) == getattr(envs, name)
        envs.reset(seed=1)
        twin.reset(seed=1)
        envs.action_space.seed(1)
        action = envs.action_space.sample()
        assert (envs.step(action)[1] == twin.step(action)[1]).all()
        assert digests(twin) == digests(envs)
        twin.close()
    single = gymnasium.make("oncall/Spike-v0", action_mode="dict", split="test")
    twin = gymnasium.make(EnvSpec.from_json(single.spec.to_json()))
    assert twin.action_space == single.action_space


def test_every_keyword_is_one_of_the_constructor() -> None:
    names = set(oncall_gym.OncallVectorEnv.__init__.__annotations__) - {"return"}
    others = {"scenario", "num_envs", "demand_rps", "decision_interval_s", "scale"}
    assert names == {*KEYWORDS, *others}


def test_enum_members_of_gymnasium_are_taken() -> None:
    for mode in AutoresetMode:
        env = oncall_gym.OncallVectorEnv(SHORT, autoreset_mode=mode)
        assert env.autoreset_mode is mode
        assert oncall_gym.OncallVectorEnv(SHORT, autoreset_mode=mode.value).autoreset_mode is mode


def test_a_scenario_may_be_a_name_a_path_a_dict_or_a_list(tmp_path: Path) -> None:
    file = tmp_path / "short.json"
    file.write_text(json.dumps(SHORT))
    for scenario in (SHORT, file, str(file)):
        env = gymnasium.make("oncall/Fleet-v0", scenario=scenario)
        assert env.unwrapped.world_spec.scenario == "short"
        assert env.reset(seed=1)[1]["seed"] == 1
        assert env.unwrapped.row_info()["length_min"] == 5
    envs = oncall_gym.OncallVectorEnv(["spike", "steady", str(file)], 64)
    envs.reset(seed=1)
    assert {envs.scenario_of(row) for row in range(64)} == {"spike", "steady", "short"}


def test_a_scenario_reads_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "demand.csv").write_text("requests_per_s\n100\n200\n300\n")
    file = tmp_path / "mine.json"
    content: dict[str, Any] = {"schema_version": 1, "world": "fleet", "name": "mine"}
    content["demand"] = {"series": {"csv": "demand.csv"}}
    file.write_text(json.dumps(content))
    env = oncall_gym.OncallEnv(file)
    env.reset(seed=1)
    seen = []
    for _ in range(3):
        env.step(keep(env))
        seen.append(env.signals()["offered_rps"])
    assert seen == pytest.approx([100, 200, 300], rel=0.25)


def test_exact_demand() -> None:
    env = oncall_gym.OncallVectorEnv("spike", 2, demand_rps=[500, 750.5], info="signals")
    env.reset(seed=1)
    seen = [env.step(keep(env))[4]["signals"]["offered_rps"].tolist() for _ in range(3)]
    assert seen == [[500.0] * 2, [750.5] * 2, [750.5] * 2]


def test_mixtures_draw_all_their_scenarios() -> None:
    env = oncall_gym.OncallVectorEnv("mixed", 64)
    env.reset(seed=1)
    assert {env.scenario_of(row) for row in range(64)} == {"spike", "bad-build", "cache-flush"}
    spike = oncall_gym.OncallEnv("spike")
    spike.reset(seed=1)
    assert all(np.isfinite(value) for value in spike.drawn().values())
    assert spike.drawn()


def test_calls_for_each_row() -> None:
    env = oncall_gym.OncallVectorEnv("spike", 3)
    env.reset(seed=1)
    assert env.call("action_mode") == env.get_attr("action_mode") == ("multi_discrete",) * 3
    assert env.call("digest", 1) == (env.digest(1),) * 3
    env.set_attr("label", ["a", "a", "a"])
    assert env.label == "a"
    with pytest.raises(oncall_gym.OptionError, match="label"):
        env.set_attr("label", ["a", "b", "a"])
    with pytest.raises(oncall_gym.OptionError, match="label"):
        env.set_attr("label", ["a", "a"])


def test_dashboards_of_each_row() -> None:
    pytest.importorskip("matplotlib")
    env = oncall_gym.OncallVectorEnv("spike", 2, render_mode="rgb_array")
    env.reset(seed=1)
    env.step(keep(env))
    frames = env.call("render")
    assert len(frames) == 2
    assert all(frame.dtype == np.uint8 and frame.ndim == 3 for frame in frames)
    with pytest.raises(oncall_gym.OrderError, match="render_mode"):
        oncall_gym.OncallVectorEnv("spike").render()


def test_threads_can_be_changed() -> None:
    env = oncall_gym.OncallVectorEnv("spike", 2)
    assert env.threads == 1
    env.threads = 2
    assert env.threads == 2
    with pytest.raises(oncall_gym.OptionError, match="threads"):
        env.threads = 0


def test_the_command_line_is_there() -> None:
    command = [sys.executable, "-m", "oncall_gym", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cache-flush" in done.stdout
    bad = subprocess.run([*command[:3], "nonsense"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2
