"""Steps sent ahead: the same results as `step`, and clear errors for calls out of order."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np
import pytest

from conftest import AUTORESET, SHORT
from oncall_gym import OncallVectorEnv
from oncall_gym.errors import ActionError, DtypeError, OrderError, ShapeError

ROWS = 33


def same(a: Any, b: Any) -> None:
    """Equal, also inside dicts, to the bit."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            same(a[key], b[key])
    else:
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert np.asarray(a).dtype == np.asarray(b).dtype


@pytest.mark.parametrize("mode", AUTORESET[:2])
@pytest.mark.parametrize(
    "keywords",
    [{}, {"copy": False}, {"info": "signals", "cost_info": True, "reward_terms": True}],
    ids=["copied", "in place", "everything"],
)
def test_sent_steps_are_steps(mode: str, keywords: dict[str, Any], actions: Any) -> None:
    plain = OncallVectorEnv(SHORT, ROWS, autoreset_mode=mode, **keywords)
    ahead = OncallVectorEnv(SHORT, ROWS, autoreset_mode=mode, threads=2, **keywords)
    same(plain.reset(seed=3)[0], ahead.reset(seed=3)[0])
    for action in actions(plain, 14):
        sent = action.copy()
        ahead.send(sent)
        sent[:] = 0  # copied, so that this changes nothing
        for a, b in zip(plain.step(action), ahead.recv(), strict=True):
            same(a, b)
    # The two ways may be mixed.
    for action in actions(plain, 3, seed=9):
        same(plain.step(action)[0], ahead.step(action)[0])
    assert plain.digest(7) == ahead.digest(7)


def test_received_arrays_are_not_written_again(actions: Any) -> None:
    env = OncallVectorEnv(SHORT, ROWS, copy=False)
    env.reset(seed=1)
    first, second = actions(env, 2)
    env.send(first)
    obs = env.recv()[0]
    before = obs.copy()
    env.send(second)
    env.recv()
    np.testing.assert_array_equal(obs, before)


@pytest.mark.parametrize(
    "call",
    [
        lambda env, action: env.send(action),
        lambda env, action: env.step(action),
        lambda env, action: env.reset(seed=1),
        lambda env, action: env.signals(),
        lambda env, action: env.get_state(),
        lambda env, action: env.digest(0),
        lambda env, action: copy.deepcopy(env),
        lambda env, action: setattr(env, "threads", 2),
    ],
    ids=["send", "step", "reset", "signals", "get_state", "digest", "deepcopy", "threads"],
)
def test_other_calls_wait_for_recv(call: Any, actions: Any) -> None:
    env = OncallVectorEnv(SHORT, ROWS)
    env.reset(seed=1)
    (action,) = actions(env, 1)
    env.send(action)
    with pytest.raises(OrderError, match="sent and not received: expected recv"):
        call(env, action)
    assert env.recv()[0].shape == (ROWS, env.single_observation_space.shape[0])
    env.step(action)


def test_recv_without_send() -> None:
    env = OncallVectorEnv(SHORT, 2)
    env.reset(seed=1)
    with pytest.raises(OrderError, match="no step was sent: expected send"):
        env.recv()
    env.close()
    with pytest.raises(OrderError, match="closed"):
        env.recv()
    with pytest.raises(OrderError, match="closed"):
        env.send(np.zeros((2, 8), np.int64))


def test_bad_actions_are_refused_when_sent() -> None:
    env = OncallVectorEnv(SHORT, 2)
    with pytest.raises(OrderError, match="never reset"):
        env.send(np.zeros((2, 8), np.int64))
    env.reset(seed=1)
    with pytest.raises(ActionError, match="row 1, autoscale = 3"):
        env.send(np.array([[0] * 8, [0, 3, 0, 0, 0, 0, 0, 0]]))
    with pytest.raises(ShapeError, match="shape"):
        env.send(np.zeros((3, 8), np.int64))
    with pytest.raises(DtypeError, match="dtype"):
        env.send(np.zeros((2, 8), np.uint16))
    env.step(np.zeros((2, 8), np.int64))


def test_dict_and_box_actions_are_sent(actions: Any) -> None:
    for mode in ("box", "dict"):
        plain, ahead = (OncallVectorEnv(SHORT, 3, action_mode=mode) for _ in range(2))
        plain.reset(seed=1)
        ahead.reset(seed=1)
        for action in actions(plain, 6):
            ahead.send(action)
            same(plain.step(action)[0], ahead.recv()[0])


def test_closing_and_dropping_with_a_step_under_way(actions: Any) -> None:
    for close in (True, False):
        env = OncallVectorEnv("spike", 2048)
        env.reset(seed=1)
        (action,) = actions(env, 1)
        env.send(action)
        if close:
            env.close()
            with pytest.raises(OrderError, match="closed"):
                env.recv()
        del env


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_told(actions: Any) -> None:
    env = OncallVectorEnv(SHORT, ROWS)
    env.reset(seed=1)
    first, second = actions(env, 2)
    env.send(first)
    child = os.fork()
    if child == 0:
        try:
            env.recv()
        except OrderError as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    env.recv()
    env.send(second)
    env.recv()
