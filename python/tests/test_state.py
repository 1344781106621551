"""Save, restore, copy and pickle, in the middle of an episode."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import AUTORESET, SHORT, digests, same, trace
from oncall_gym import OncallEnv, OncallVectorEnv, OptionError, OrderError, ShapeError, StateError


def run(env: Any, actions: list[Any]) -> list[np.ndarray]:
    seen = []
    for action in actions:
        *arrays, _ = env.step(action)
        seen += [np.array(array) for array in arrays]
    return seen


@pytest.mark.parametrize("autoreset", AUTORESET)
def test_a_restored_batch_goes_on_alike(autoreset: str, actions: Any) -> None:
    count = 4 if autoreset == "disabled" else 25
    env = OncallVectorEnv(SHORT, 3, autoreset_mode=autoreset)
    batch = actions(env, count)
    trace(env, batch[:2], seed=1)
    states = env.get_state()
    expected = run(env, batch[2:])
    # Here, and in an environment that has never been reset.
    env.set_state(states)
    assert same(run(env, batch[2:]), expected)
    other = OncallVectorEnv(SHORT, 3, autoreset_mode=autoreset)
    other.set_state(states)
    assert (other.observations() == trace(env, batch[:2], seed=1)[-4]).all()
    assert same(run(other, batch[2:]), expected)


def test_a_state_fits_any_row_and_the_single_environment(actions: Any) -> None:
    env = OncallVectorEnv("spike-hard", 3)
    batch = actions(env, 20)
    trace(env, batch[:10], seed=[1, 2, 3])
    single = OncallEnv("spike-hard")
    single.set_state(env.get_state([2])[0])
    assert single.digest() == env.digest(2)
    assert (single.observations() == env.observations()[2]).all()
    env.set_state([single.get_state()], [0])
    assert env.digest(0) == env.digest(2)
    env.copy_rows([0, 1], [1, 0])
    assert env.digest(1) == env.digest(2)


@pytest.mark.parametrize("autoreset", AUTORESET)
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_of_a_vector_environment(clone: Any, autoreset: str, actions: Any) -> None:
    env = OncallVectorEnv(
        SHORT, 3, autoreset_mode=autoreset, copy=False, cost_info=True, info="signals"
    )
    count = 4 if autoreset == "disabled" else 16
    batch = actions(env, count)
    trace(env, batch[:3], seed=1)
    twin = clone(env)
    assert twin.autoreset_mode is env.autoreset_mode
    assert twin.metadata == env.metadata
    assert digests(twin) == digests(env)
    assert same(run(twin, batch[3:]), run(env, batch[3:]))
    assert digests(twin) == digests(env)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_of_a_single_environment(clone: Any, actions: Any) -> None:
    env = OncallEnv("mixed-hard", action_mode="box")
    batch = actions(env, 20)
    trace(env, batch[:10], seed=1)
    twin = clone(env)
    assert same(run(twin, batch[10:]), run(env, batch[10:]))
    # Neither moves the other.
    assert twin.digest() == env.digest()
    twin.step(batch[0])
    assert twin.digest() != env.digest()


def test_copies_before_the_first_reset_draw_alike() -> None:
    env = OncallVectorEnv("spike", 2)
    env.np_random = np.random.default_rng(3)
    twin = copy.deepcopy(env)
    assert twin.reset()[1]["seed"].tolist() == env.reset()[1]["seed"].tolist()


def test_a_pickle_needs_no_files(tmp_path: Path) -> None:
    (tmp_path / "demand.csv").write_text("requests_per_s\n100\n200\n300\n")
    scenario = tmp_path / "mine.json"
    scenario.write_text(
        '{"schema_version": 1, "world": "fleet", "name": "mine",'
        ' "demand": {"series": {"csv": "demand.csv"}}}'
    )
    env = OncallVectorEnv(scenario, 2)
    env.reset(seed=1)
    data = pickle.dumps(env)
    for file in tmp_path.iterdir():
        file.unlink()
    assert digests(pickle.loads(data)) == digests(env)


@pytest.mark.parametrize(
    "options",
    [
        {"scenario": "steady"},
        {"scenario": {**SHORT, "opening": {"serving": 11}}},
        {"split": "test"},
        {"decision_interval_min": 2},
    ],
    ids=str,
)
def test_a_state_of_another_environment_is_refused(options: dict[str, Any]) -> None:
    env = OncallVectorEnv(SHORT, 2)
    other = OncallVectorEnv(**{"scenario": SHORT, "num_envs": 2, **options})
    env.reset(seed=1)
    other.reset(seed=1)
    before = digests(env)
    with pytest.raises(StateError):
        env.set_state(other.get_state())
    assert digests(env) == before


def test_bytes_that_are_no_state() -> None:
    env = OncallVectorEnv(SHORT, 2)
    env.reset(seed=1)
    good = env.get_state()
    env.step(np.zeros((2, 8), np.int64))
    before = digests(env)
    flipped = bytearray(good[1])
    flipped[100] ^= 1
    bad = [b"", b"something else", good[1][:-1], good[1][:50], good[1] + b"\0", bytes(flipped)]
    for state in bad:
        # The first is good: all or none.
        with pytest.raises(StateError):
            env.set_state([good[0], state])
        assert digests(env) == before
    with pytest.raises(StateError, match="bytes"):
        env.set_state([good[0], "text"])
    with pytest.raises(ShapeError):
        env.set_state([good[0]])
    with pytest.raises(OptionError):
        env.set_state(good, [0, 2])
    with pytest.raises(OptionError):
        env.set_state(good, [1, 1])
    assert digests(env) == before


def test_closed_environments_are_not_copied() -> None:
    env = OncallVectorEnv(SHORT, 2)
    env.reset(seed=1)
    env.close()
    with pytest.raises(OrderError, match="closed"):
        copy.deepcopy(env)
