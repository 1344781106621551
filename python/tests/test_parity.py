"""One engine behind everything: the same bits for any batch, thread count, order and front end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oncall_gym
from conftest import ACTION_MODES, SHORT, VIEWS, digests, keep, same, trace
from oncall_gym import OncallEnv, OncallVectorEnv

SEEDS = [11, 12, 2**64 - 1, 0]
GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "fleet"


def row_of(mode: str, action: Any, row: int) -> Any:
    """One row's part of a batch of actions."""
    if mode == "dict":
        return {name: column[row] for name, column in action.items()}
    return action[row]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("interval", [1, 7])
@pytest.mark.parametrize("mode", ACTION_MODES)
def test_a_row_is_what_a_single_environment_plays(
    mode: str, interval: int, view: str, actions: Any
) -> None:
    options = {"action_mode": mode, "decision_interval_min": interval, "observation": view}
    env = OncallVectorEnv("mixed-hard", len(SEEDS), **options)
    batch = actions(env, 40)
    env.reset(seed=SEEDS)
    steps = [env.step(action) for action in batch]
    for row, seed in enumerate(SEEDS):
        single = OncallEnv("mixed-hard", **options)
        single.reset(seed=seed)
        for action, step in zip(batch, steps, strict=True):
            observation, reward, terminated, truncated, _ = single.step(row_of(mode, action, row))
            assert observation.tobytes() == step[0][row].tobytes()
            assert reward == step[1][row]
            assert (terminated, truncated) == (step[2][row], step[3][row])
            if truncated:
                break
        else:
            assert single.digest() == env.digest(row)


def test_batch_sizes_and_threads_change_no_bit() -> None:
    longest = 1024
    full = OncallVectorEnv("spike-hard", longest)
    full.action_space.seed(9)
    batch = [full.action_space.sample() for _ in range(12)]
    expected: dict[int, int] = {}
    for threads in (1, 2, 8):
        for rows in (longest, 1, 2, 31, 32, 33):
            env = OncallVectorEnv("spike-hard", rows, threads=threads)
            env.reset(seed=4)
            for action in batch:
                env.step(np.ascontiguousarray(action[:rows]))
            for row, digest in enumerate(digests(env)):
                assert expected.setdefault(row, digest) == digest, (threads, rows, row)


def test_copy_off_changes_no_bit(actions: Any) -> None:
    runs = []
    for copy in (True, False):
        env = OncallVectorEnv(SHORT, 3, copy=copy, autoreset_mode="same_step")
        runs.append(trace(env, actions(env, 20), seed=2))
    assert same(*runs)


def test_seeds_repeat_and_differ(actions: Any) -> None:
    env = OncallVectorEnv("spike", 3)
    batch = actions(env, 30)
    first, other, again = (trace(env, batch, seed=seed) for seed in (1, 2, 1))
    assert same(first, again)
    assert not same(first, other)
    assert len({env.digest_drawn(row) for row in range(3)}) == 3
    env.reset(seed=1)
    one = [env.digest_drawn(row) for row in range(3)]
    env.reset()
    assert not set(one) & {env.digest_drawn(row) for row in range(3)}


def test_unseeded_environments_differ() -> None:
    drawn = []
    for _ in range(2):
        env = OncallVectorEnv("spike", 3)
        _, infos = env.reset()
        drawn += infos["seed"].tolist()
        single = OncallEnv("spike")
        _, info = single.reset()
        drawn.append(info["seed"])
    assert len(set(drawn)) == 8


def test_a_list_of_seeds_may_leave_rows_out() -> None:
    env = OncallVectorEnv("spike", 3)
    _, infos = env.reset(seed=[7, None, 8])
    fresh = int(infos["seed"][1])
    assert infos["seed"].tolist() == [7, fresh, 8]
    _, infos = env.reset(seed=[None, 5, None])
    assert infos["seed"].tolist() == [7, 5, 8]
    assert infos["episode_number"].tolist() == [1, 0, 1]
    _, infos = env.reset(seed=np.array([1, 2, 3]))
    assert infos["seed"].tolist() == [1, 2, 3]


def test_training_and_test_episodes_share_nothing() -> None:
    drawn = []
    for split in ("train", "test"):
        env = OncallVectorEnv("mixed-hard", 256, split=split)
        env.reset(seed=1)
        drawn.append({env.digest_drawn(row) for row in range(256)})
    assert len(drawn[0]) > 250
    assert not drawn[0] & drawn[1]


def test_actions_do_not_change_the_morning() -> None:
    # Two policies meet the same demand, minute by minute.
    demands = []
    for index in (0, 1):
        env = OncallVectorEnv("spike-hard", 4, info="signals")
        env.reset(seed=3)
        action = keep(env)
        action[:, 0] = 13 * index
        demands.append([env.step(action)[4]["signals"]["offered_rps"] for _ in range(30)])
    assert np.array_equal(*demands)


def golden_episodes() -> list[Path]:
    return sorted(GOLDEN.glob("*.json"))


def test_there_are_fifteen_golden_episodes() -> None:
    assert len(golden_episodes()) == 15


@pytest.mark.parametrize("path", golden_episodes(), ids=lambda path: path.stem)
def test_a_golden_episode_agrees(path: Path) -> None:
    golden = json.loads(path.read_text())
    minutes = len(golden["demand_rps"])
    env = OncallEnv(
        golden["scenario"],
        action_mode="dict",
        demand_rps=golden["demand_rps"],
        max_minutes=minutes,
        info="signals",
    )
    env.reset(seed=0)
    for minute in range(minutes):
        action = {name: values[minute] for name, values in golden["dials"].items()}
        _, reward, _, truncated, info = env.step(action)
        found = {**info["signals"], **info["terms"], "reward": reward}
        for name, expected in golden["expect"].items():
            if name in ("serving", "booting", "page"):
                assert found[name] == expected[minute], (minute, name)
            else:
                near = pytest.approx(expected[minute], rel=1e-9, abs=1e-12)
                assert found[name] == near, (minute, name)
        assert truncated == (minute == minutes - 1)


def test_the_package_ships_what_it_names() -> None:
    named, shipped = set(filter(None, oncall_gym.IDS.values())), set(oncall_gym.scenario_names())
    assert named <= shipped
    # Pairs and shifts that are held out are parts of mixtures, without ids of their own.
    assert all(name.startswith(("pair-", "heldout-")) for name in shipped - named)
