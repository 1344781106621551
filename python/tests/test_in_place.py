"""Results that are made once, and infos whose arrays are used again: the same as new ones."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from conftest import AUTORESET, SHORT
from oncall_gym import ActionError, DtypeError, OncallVectorEnv, OrderError, _native
from test_ahead import same

ROWS = 33


def make(rows: int = ROWS, **keywords: Any) -> OncallVectorEnv:
    env = OncallVectorEnv(SHORT, rows, **keywords)
    env.reset(seed=4)
    # Rows end each at its own time.
    for first in range(1, 4):
        env.step(np.zeros((rows, 8), np.int64))
        mask = np.arange(rows) % 4 == first
        if mask.any():
            env.reset(options={"reset_mask": mask})
    return env


def reset_over(env: OncallVectorEnv) -> None:
    """What the caller does with autoreset disabled."""
    over = env.row_info()["ended"]
    if env.autoreset_mode.name == "DISABLED" and over.any():
        env.reset(options={"reset_mask": over})


def expected_infos(env: OncallVectorEnv, last: Any, cost: Any) -> dict[str, Any]:
    """The infos of the last step, from the columns that the engine keeps."""
    began, ended = env._core.began(), env._core.ended()
    infos: dict[str, Any] = {}
    junk = began & ~ended
    if junk.any():
        infos |= {"valid": ~junk, "_valid": np.ones(env.num_envs, np.bool_)}
    if ended.any():
        stats = env._core.episode_stats()
        stats["episode_number"] = stats.pop("episode")
        sums = {key: np.where(ended, x, x.dtype.type(0)) for key, x in stats.items()}
        sums |= {f"_{key}": ended for key in stats}
        told = {"oncall": sums, "_oncall": ended}
        if last is None:
            infos |= told
        else:
            infos["final_obs"] = np.where(ended[:, None], last, np.float32(0))
            infos["_final_obs"] = ended
            if cost is not None:
                told |= {"cost": np.where(ended, cost, 0.0), "_cost": ended}
            infos |= {"final_info": told, "_final_info": ended}
    if began.any():
        rows = env.row_info()
        for key, values in (("seed", rows["seed"]), ("episode_number", rows["episode"])):
            infos |= {key: np.where(began, values, np.uint64(0)), f"_{key}": began}
    return infos


@pytest.mark.parametrize("mode", AUTORESET)
@pytest.mark.parametrize("rows", [1, ROWS, 700])
def test_in_place_is_as_new(mode: str, rows: int, actions: Any) -> None:
    new, once = make(rows, autoreset_mode=mode), make(rows, autoreset_mode=mode, copy=False)
    arrays = None
    for action in actions(new, 17):
        results = once.step(action)
        for a, b in zip(new.step(action), results, strict=True):
            same(a, b)
        assert arrays is None or all(a is b for a, b in zip(arrays, results[:4], strict=True))
        arrays = results[:4]
        reset_over(new)
        reset_over(once)
    assert [new.digest(row) for row in range(rows)] == [once.digest(row) for row in range(rows)]


@pytest.mark.parametrize("mode", AUTORESET)
@pytest.mark.parametrize("keywords", [{}, {"copy": False}, {"cost_info": True}])
def test_infos_are_those_of_the_columns(mode: str, keywords: dict[str, Any], actions: Any) -> None:
    env = make(autoreset_mode=mode, **keywords)
    seen = 0
    for action in actions(env, 17):
        infos = env.step(action)[4]
        seen += bool(infos.pop("_cost", np.zeros(1)).any() or infos)
        cost = infos.pop("cost", None)
        expected = expected_infos(env, env._final, cost)
        assert list(infos) == list(expected)
        same(infos, expected)
        reset_over(env)
    assert seen > 8


def test_infos_that_are_held_are_never_changed(actions: Any) -> None:
    env = make(autoreset_mode="same_step", copy=False)
    held, views = [], []
    for step, action in enumerate(actions(env, 40)):
        infos = env.step(action)[4]
        if "seed" in infos and step % 3 == 0:
            held.append((infos, copy.deepcopy(infos)))
        elif "seed" in infos:
            # A view is enough to hold an array.
            views.append((infos["seed"][1:5], infos["seed"][1:5].copy()))
    assert len(held) > 8
    for infos, before in held:
        same(infos, before)
    for view, before in views:
        same(view, before)


def test_infos_that_were_written_into_come_clean_again(actions: Any) -> None:
    plain, spoilt = make(autoreset_mode="same_step"), make(autoreset_mode="same_step")
    for action in actions(plain, 40):
        infos = spoilt.step(action)[4]
        same(plain.step(action)[4], infos)
        for array in [*infos.values(), *infos.get("final_info", {}).get("oncall", {}).values()]:
            if isinstance(array, np.ndarray):
                array[:] = 1
        if "seed" in infos:
            infos["seed"].shape = (ROWS, 1)
            infos["episode_number"].flags.writeable = False


def test_copies_step_into_arrays_of_their_own(actions: Any) -> None:
    env = make(copy=False)
    first, second = actions(env, 2)
    obs = env.step(first)[0].copy()
    others = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    results = [other.step(second) for other in others]
    same(env._obs, obs)
    for result in results:
        same(result[0], env.step(second)[0] if result is results[0] else env._obs)
        assert not np.shares_memory(result[0], env._obs)


def test_a_step_of_a_subclass_is_called(actions: Any) -> None:
    class Doubled(OncallVectorEnv):
        def step(self, actions: Any) -> Any:
            obs, rewards, *rest = super().step(actions)
            return obs, 2 * rewards, *rest

    plain = OncallVectorEnv(SHORT, 3, copy=False)
    doubled = Doubled(SHORT, 3, copy=False)
    plain.reset(seed=1)
    doubled.reset(seed=1)
    action = actions(plain, 1)[0]
    same(2 * plain.step(action)[1], doubled.step(action)[1])


@pytest.mark.parametrize("rows", [1, 3])
def test_bad_actions_change_nothing(rows: int) -> None:
    env = make(rows, copy=False, autoreset_mode="same_step")
    before = [env.digest(row) for row in range(rows)]
    good = np.zeros((rows, 8), np.int64)
    bad = good.copy()
    bad[rows - 1, 3] = 99
    with pytest.raises(ActionError, match=rf"row {rows - 1}, cache_ttl_s = 99"):
        env.step(bad)
    with pytest.raises(DtypeError, match="float64"):
        env.step(good.astype(np.float64))
    assert [env.digest(row) for row in range(rows)] == before
    # Flags of a caller's view that are none.
    _, _, terminated, truncated, _ = env.step(good)
    terminated.view(np.uint8)[:] = 7
    truncated.view(np.uint8)[:] = 255
    _, _, terminated, _, _ = env.step(good)
    assert terminated.view(np.uint8).max() == 0


def test_calls_out_of_order() -> None:
    core = _native.VecCore(OncallVectorEnv(SHORT, 1)._text.text)
    with pytest.raises(OrderError, match=r"expected bind\(\) first"):
        core.step_bound(np.zeros((1, 8), np.int64))
    env = OncallVectorEnv(SHORT, 3, copy=False)
    with pytest.raises(OrderError, match="expected a reset first"):
        env.step(np.zeros((3, 8), np.int64))
    env.close()
    with pytest.raises(OrderError, match="closed"):
        env.step(np.zeros((3, 8), np.int64))


def test_arrays_that_were_received_are_written_from_then_on() -> None:
    env = make(copy=False)
    action = np.zeros((ROWS, 8), np.int64)
    env.send(action)
    obs = env.recv()[0]
    assert env.step(action)[0] is obs
