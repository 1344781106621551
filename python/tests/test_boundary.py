"""Bad input: each a named exception that says what was expected, and nothing has changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import SHORT, digests, keep
from oncall_gym import (
    ActionError,
    DtypeError,
    OncallEnv,
    OncallError,
    OncallVectorEnv,
    OptionError,
    OrderError,
    ScenarioError,
    ShapeError,
    _native,
)


def stops(edit: Callable[[Any], Any]) -> Any:
    return edit(np.zeros((3, 8), np.int64))


def at(value: Any, row: int = 1, dial: int = 3) -> Callable[[Any], Any]:
    def edit(array: Any) -> Any:
        array[row, dial] = value
        return array

    return edit


BAD_STOPS: dict[str, tuple[Any, type[Exception], str]] = {
    "an index too high": (stops(at(13)), ActionError, r"row 1, .*cache_ttl_s.*13.*0\.\.=12"),
    "a negative index": (stops(at(-1)), ActionError, r"row 1, .*cache_ttl_s.*-1"),
    "floats": (stops(lambda a: a.astype(np.float32)), DtypeError, "float32.*int8, int32 or int64"),
    "unsigned": (stops(lambda a: a.astype(np.uint8)), DtypeError, "uint8"),
    "objects": (stops(lambda a: a.astype(object)), DtypeError, "object"),
    "the other byte order": (stops(lambda a: a.astype(">i8")), DtypeError, ">i8"),
    "a list": (stops(lambda a: a.tolist()), DtypeError, "found list"),
    "nothing": (None, DtypeError, "found NoneType"),
    "a row too few": (stops(lambda a: a[:2]), ShapeError, r"\(2, 8\), expected \(3, 8\)"),
    "a dial too many": (np.zeros((3, 9), np.int64), ShapeError, r"\(3, 9\)"),
    "one row": (np.zeros(8, np.int64), ShapeError, r"\(8,\)"),
    "a rank too many": (np.zeros((3, 8, 1), np.int64), ShapeError, r"\(3, 8, 1\)"),
    "a flat array": (np.zeros(24, np.int64), ShapeError, r"\(24,\)"),
    "a number": (np.int64(0), DtypeError, "found int64"),
    "columns first": (np.zeros((8, 3), np.int64).T, ShapeError, "strides.*C-contiguous"),
    "every other row": (np.zeros((6, 8), np.int64)[::2], ShapeError, "strides"),
    "rows reversed": (np.zeros((3, 8), np.int64)[::-1], ShapeError, "strides"),
    "a broadcast row": (np.broadcast_to(np.zeros(8, np.int64), (3, 8)), ShapeError, "strides"),
}


def refuse(env: OncallVectorEnv, action: Any, error: type[Exception], match: str) -> None:
    """The action is refused by name, and the environment goes on as if it had not been there."""
    before, stats = digests(env), env.episode_stats(running=True)
    with pytest.raises(error, match=match) as caught:
        env.step(action)
    assert isinstance(caught.value, OncallError)
    assert digests(env) == before
    after = env.episode_stats(running=True)
    assert all((stats[key] == after[key]).all() for key in stats)


@pytest.mark.parametrize("name", BAD_STOPS)
def test_stops(name: str) -> None:
    env = OncallVectorEnv(SHORT, 3)
    env.reset(seed=1)
    env.step(keep(env))
    refuse(env, *BAD_STOPS[name])
    env.step(keep(env))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.0001, -1.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_box(value: float, dtype: type) -> None:
    env = OncallVectorEnv(SHORT, 3, action_mode="box")
    env.reset(seed=1)
    action = np.zeros((3, 8), dtype)
    action[2, 5] = value
    refuse(env, action, ActionError, r"row 2, .*shed_share.*-1\.\.=1")
    refuse(env, np.zeros((3, 8), np.int64), DtypeError, "int64.*float32 or float64")


BAD_DICTS: dict[str, tuple[Any, type[Exception], str]] = {
    "too high": (
        {"min_instances": np.array([1.0, 2.0, 41.0])},
        ActionError,
        r"row 2.*41.*1\.\.=40",
    ),
    "too low": ({"target_utilization": np.full(3, 0.29)}, ActionError, "row 0.*0.29"),
    "NaN": ({"shed_share": np.array([0.0, np.nan, 0.0])}, ActionError, "row 1.*shed_share.*NaN"),
    "infinite": ({"cache_ttl_s": np.full(3, np.inf)}, ActionError, "cache_ttl_s.*inf"),
    "a name that is none": ({"min_instance": np.ones(3)}, ActionError, "min_instance"),
    "a key that is no name": ({3: np.ones(3)}, ActionError, "key"),
    "a value too few": ({"feature": np.ones(2)}, ShapeError, r"feature.*\(2,\), expected \(3,\)"),
    "a matrix": ({"feature": np.ones((3, 1))}, ShapeError, r"\(3, 1\)"),
    "one number": ({"feature": 1.0}, DtypeError, "feature.*found float"),
    "a list": ({"feature": [1, 1, 1]}, DtypeError, "feature.*found list"),
    "texts": ({"feature": np.array(["a", "b", "c"])}, DtypeError, "feature.*<U1"),
    "complex": ({"feature": np.ones(3, complex)}, DtypeError, "feature.*complex"),
    "an array": (np.zeros((3, 8)), DtypeError, "dict of natural values"),
}


@pytest.mark.parametrize("name", BAD_DICTS)
def test_dicts(name: str) -> None:
    env = OncallVectorEnv(SHORT, 3, action_mode="dict")
    env.reset(seed=1)
    refuse(env, *BAD_DICTS[name])


def test_a_dial_that_is_left_out_keeps() -> None:
    env = OncallVectorEnv(SHORT, 2, action_mode="dict")
    env.reset(seed=1)
    env.step({"cache_ttl_s": np.array([45.5, 300.0]), "min_instances": np.array([20, 12])})
    env.step({})
    dials = env.dials()
    assert dials["cache_ttl_s"].tolist() == [45.5, 300.0]
    assert dials["min_instances"].tolist() == [20.0, 12.0]
    single = OncallEnv(SHORT, action_mode="dict")
    single.reset(seed=1)
    single.step({"cache_ttl_s": 45.5, "feature": np.int64(0)})
    assert (single.dials()["cache_ttl_s"], single.dials()["feature"]) == (45.5, 0.0)


# The native calls, whose arrays are the caller's


def arrays(core: _native.VecCore) -> dict[str, Any]:
    n, k = core.num_envs, core.obs_len
    return {
        "actions": np.zeros((n, 8), np.int64),
        "obs": np.zeros((n, k), np.float32),
        "rewards": np.zeros(n),
        "terminated": np.zeros(n, np.bool_),
        "truncated": np.zeros(n, np.bool_),
        "final_obs": np.zeros((n, k), np.float32),
        "terms": np.zeros((n, 6)),
        "cost": np.zeros(n),
        "signals": np.zeros((n, len(core.spec()["signals"]))),
    }


@pytest.fixture
def core() -> Iterator[_native.VecCore]:
    env = OncallVectorEnv(SHORT, 3)
    env.reset(seed=1)
    yield env._core
    env.close()


def refuse_native(
    core: _native.VecCore, call: dict[str, Any], error: type[Exception], match: str
) -> None:
    before = [core.digest(row) for row in range(3)]
    with pytest.raises(error, match=match):
        core.step_into(**call)
    assert [core.digest(row) for row in range(3)] == before


@pytest.mark.parametrize("name", ["obs", "rewards", "terminated", "truncated", "final_obs"])
def test_outputs(core: _native.VecCore, name: str) -> None:
    good = arrays(core)
    array = good[name]
    wrong = np.float64 if array.dtype != np.float64 else np.float32
    refuse_native(core, {**good, name: array.astype(wrong)}, DtypeError, f"^{name}: dtype")
    refuse_native(core, {**good, name: array[:2]}, ShapeError, f"^{name}: shape")
    strided = np.zeros((3, *array.shape[1:], 2), array.dtype)[..., 0]
    refuse_native(core, {**good, name: strided}, ShapeError, f"^{name}: strides")
    locked = array.copy()
    locked.flags.writeable = False
    refuse_native(core, {**good, name: locked}, ShapeError, f"^{name}: read-only")
    refuse_native(core, {**good, name: array.tolist()}, DtypeError, f"^{name}: found list")
    core.step_into(**good)


def test_aliased_buffers(core: _native.VecCore) -> None:
    good = arrays(core)
    k = core.obs_len
    shared = "shares memory"
    refuse_native(core, {**good, "truncated": good["terminated"]}, ShapeError, shared)
    refuse_native(core, {**good, "cost": good["rewards"]}, ShapeError, shared)
    memory = np.zeros(6 * k, np.float32)
    overlapping = {
        "obs": memory[: 3 * k].reshape(3, k),
        "final_obs": memory[k : 4 * k].reshape(3, k),
    }
    refuse_native(core, {**good, **overlapping}, ShapeError, shared)
    raw = np.zeros(24, np.int64)
    views = {"actions": raw.reshape(3, 8), "rewards": raw[:3].view(np.float64)}
    refuse_native(core, {**good, **views}, ShapeError, shared)
    core.step_into(**good)


def test_a_misaligned_array(core: _native.VecCore) -> None:
    good = arrays(core)
    raw = np.zeros(3 * 8 + 1, np.uint8)[1:]
    refuse_native(core, {**good, "rewards": raw.view(np.float64)}, ShapeError, "aligned")


@pytest.mark.parametrize("rows", [[3], [0, 7], [-1], "0", None, [0.5]])
def test_rows(rows: Any) -> None:
    env = OncallVectorEnv(SHORT, 3)
    env.reset(seed=1)
    before = digests(env)
    with pytest.raises(OptionError, match="row"):
        env._core.save(rows)
    with pytest.raises(OptionError, match="row"):
        env.digest(rows)
    assert digests(env) == before


# Order


def test_calls_out_of_order() -> None:
    env = OncallVectorEnv(SHORT, 3)
    with pytest.raises(OrderError, match="never reset"):
        env.step(keep(env))
    with pytest.raises(OrderError, match="reset first"):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(OrderError):
        env.get_state()
    env.reset(seed=1)
    env.close()
    env.close()
    for call in (lambda: env.step(keep(env)), env.reset, env.get_state, env.observations):
        with pytest.raises(OrderError, match="closed"):
            call()


def test_a_single_environment_must_be_reset() -> None:
    env = OncallEnv(SHORT)
    with pytest.raises(OrderError, match="never reset"):
        env.step(keep(env))
    env.reset(seed=1)
    for _ in range(5):
        env.step(keep(env))
    with pytest.raises(OrderError, match="over"):
        env.step(keep(env))
    env.close()
    env.close()
    with pytest.raises(OrderError, match="closed"):
        env.step(keep(env))


def test_one_call_at_a_time() -> None:
    env = OncallVectorEnv("spike", 4096, decision_interval_min=30)
    env.reset(seed=1)
    refused = []

    def step() -> None:
        try:
            env.step(keep(env))
        except OrderError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=step) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused
    assert all("another thread" in message for message in refused)
    env.step(keep(env))


# Seeds, masks, options


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", [1, 2, -3], [1, 2, 0.5]])
def test_seeds(seed: Any) -> None:
    env = OncallVectorEnv(SHORT, 3)
    env.reset(seed=1)
    before = digests(env)
    with pytest.raises(OptionError, match="seed"):
        env.reset(seed=seed)
    assert digests(env) == before


def test_a_seed_must_fit_its_generator() -> None:
    env = OncallVectorEnv({**SHORT, "generator": "mulberry32"}, 2)
    with pytest.raises(OptionError, match="mulberry32"):
        env.reset(seed=[1, 2**32])
    env.reset()
    env.reset(seed=2**63)
    env.reset(seed=[1, 2**32 - 1])


def test_a_list_of_seeds_has_one_for_each_row() -> None:
    env = OncallVectorEnv(SHORT, 3)
    with pytest.raises(ShapeError, match="2 seeds, expected 3"):
        env.reset(seed=[1, 2])


BAD_MASKS: dict[str, tuple[Any, type[Exception]]] = {
    "whole numbers": (np.ones(3, np.int64), TypeError),
    "bytes": (np.ones(3, np.uint8), TypeError),
    "a list": ([True, False, True], TypeError),
    "nothing": (None, TypeError),
    "too long": (np.ones(4, np.bool_), ValueError),
    "a column": (np.ones((3, 1), np.bool_), ValueError),
    "no row": (np.zeros(3, np.bool_), ValueError),
}


@pytest.mark.parametrize("name", BAD_MASKS)
def test_masks(name: str) -> None:
    env = OncallVectorEnv(SHORT, 3)
    env.reset(seed=1)
    before = digests(env)
    mask, error = BAD_MASKS[name]
    with pytest.raises(error, match="reset_mask") as caught:
        env.reset(options={"reset_mask": mask})
    assert isinstance(caught.value, OncallError)
    assert digests(env) == before


def test_options_that_are_none() -> None:
    env = OncallVectorEnv(SHORT, 3)
    with pytest.raises(OptionError, match="reset_masks"):
        env.reset(options={"reset_masks": np.ones(3, np.bool_)})
    with pytest.raises(OptionError, match="x"):
        OncallEnv(SHORT).reset(options={"x": 1})


BAD_KEYWORDS: list[dict[str, Any]] = [
    {"num_envs": 0},
    {"num_envs": -1},
    {"num_envs": 2**21},
    {"num_envs": 1.5},
    {"num_envs": "many"},
    {"action_mode": "discrete"},
    {"action_mode": None},
    {"observation": "record"},
    {"decision_interval_min": 0},
    {"decision_interval_min": 1441},
    {"autoreset_mode": "sometimes"},
    {"autoreset_mode": None},
    {"split": "validation"},
    {"threads": 0},
    {"threads": 100_000},
    {"max_minutes": 0},
    {"max_minutes": -5},
    {"demand_rps": []},
    {"demand_rps": [1.0, -1.0]},
    {"demand_rps": [float("nan")]},
    {"demand_rps": ["many"]},
    {"demand_rps": 5},
    {"copy": "yes"},
    {"reward_terms": 1},
    {"cost_info": None},
    {"info": "all"},
    {"render_mode": "human"},
]


@pytest.mark.parametrize("keywords", BAD_KEYWORDS, ids=str)
def test_keywords(keywords: dict[str, Any]) -> None:
    (name,) = keywords
    with pytest.raises(OptionError, match=name):
        OncallVectorEnv(SHORT, **keywords)


# Scenarios


def test_all_problems_of_a_scenario_at_once() -> None:
    bad = {**SHORT, "demandd": {}, "shift": {"length_min": -3}, "fleet": {"boot_delay_min": "x"}}
    with pytest.raises(ScenarioError) as caught:
        OncallVectorEnv(bad)
    message = str(caught.value)
    for path in ("$.demandd", "$.shift.length_min", "$.fleet.boot_delay_min"):
        assert path in message


@pytest.mark.parametrize("scenario", [3, None, b"spike", ["spike", 3]])
def test_what_is_no_scenario(scenario: Any) -> None:
    with pytest.raises(OptionError, match="scenario"):
        OncallVectorEnv(scenario)


def test_scenarios_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"spikes.*expected.*bad-build"):
        OncallVectorEnv("spikes")
    with pytest.raises(ScenarioError, match=r"none\.json"):
        OncallVectorEnv(tmp_path / "none.json")
    with pytest.raises(ScenarioError, match=r"none\.json"):
        OncallVectorEnv(str(tmp_path / "none.json"))
    with pytest.raises(ScenarioError, match="no JSON"):
        OncallVectorEnv({**SHORT, "title": object()})
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ScenarioError, match=r"broken\.json"):
        OncallVectorEnv(tmp_path / "broken.json")


BAD_SERIES = {
    "a gap": "timestamp,count\n0,10\n60,10\n180,10\n",
    "letters": "requests_per_s\n10\nmany\n",
    "negatives": "requests_per_s\n10\n-1\n",
    "nothing": "",
}


@pytest.mark.parametrize("name", BAD_SERIES)
def test_demand_from_a_bad_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "demand.csv").write_text(BAD_SERIES[name])
    scenario = tmp_path / "mine.json"
    scenario.write_text(
        '{"schema_version": 1, "world": "fleet", "name": "mine",'
        ' "demand": {"series": {"csv": "demand.csv"}}}'
    )
    with pytest.raises(ScenarioError, match=r"demand\.csv"):
        OncallVectorEnv(scenario)


def test_demand_from_a_file_that_is_not_there(tmp_path: Path) -> None:
    scenario = {**SHORT, "demand": {"series": {"csv": str(tmp_path / "none.csv")}}}
    with pytest.raises(ScenarioError, match=r"none\.csv"):
        OncallVectorEnv(scenario)
