"""CartPole through the boundary against Gymnasium's own, step by step; `make bench-cartpole`.

Every row is stepped by this engine and, from the same state, by Gymnasium's `CartPole-v1`: states,
rewards and ends must agree, in all three autoreset modes.
"""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from oncall_gym import OncallVectorEnv, OptionError

STATE = ("x", "speed", "angle", "turn")
ROWS = 70


def states(env: OncallVectorEnv) -> np.ndarray:
    """The states of all rows in natural units."""
    signals = env.signals()
    return np.stack([signals[name] for name in STATE], axis=1)


def gymnasiums(state: np.ndarray, push: int) -> tuple[np.ndarray, float, bool]:
    """A step of Gymnasium's from a state."""
    cart = gymnasium.make("CartPole-v1").unwrapped
    cart.reset(seed=0)
    cart.state = state
    _, reward, terminated, _, _ = cart.step(push)
    return np.array(cart.state, np.float64), float(reward), terminated


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_a_step_is_gymnasiums(mode: str) -> None:
    """Random pushes until most rows have fallen, and beyond."""
    env = OncallVectorEnv({"world": "cartpole"}, ROWS, autoreset_mode=mode, copy=False)
    env.reset(seed=3)
    scale = np.array([signal.high for signal in env.world_spec.observed])
    rng = np.random.default_rng(1)
    falls = 0
    over = np.zeros(ROWS, np.bool_)
    for _ in range(60):
        if mode == "disabled" and over.any():
            env.reset(options={"reset_mask": over})
            over = np.zeros(ROWS, np.bool_)
        before = states(env)
        pushes = rng.integers(0, 2, ROWS)
        obs, rewards, terminated, truncated, infos = env.step(1 + pushes.reshape(ROWS, 1))
        shown = obs.copy()
        if "final_obs" in infos:
            shown[terminated] = infos["final_obs"][terminated]
        begins = ~infos["valid"] if "valid" in infos else np.zeros(ROWS, np.bool_)
        for row in range(ROWS):
            if begins[row]:
                assert (rewards[row], terminated[row]) == (0.0, False)
                assert np.all(np.abs(states(env)[row]) <= 0.05)
                continue
            state, reward, ends = gymnasiums(before[row], int(pushes[row]))
            assert (rewards[row], terminated[row]) == (reward, ends)
            np.testing.assert_allclose(
                shown[row], np.clip(state / scale, -1.0, 1.0), rtol=2e-6, atol=1e-9
            )
            if not (ends and mode == "same_step"):
                np.testing.assert_allclose(states(env)[row], state, rtol=1e-12, atol=1e-15)
        over = terminated | truncated
        falls += int(terminated.sum())
    assert falls > ROWS


def test_an_episode_ends_after_500_steps() -> None:
    """A pole that is held up is not held longer than Gymnasium holds it."""
    env = OncallVectorEnv({"world": "cartpole"}, 3, autoreset_mode="same_step")
    env.reset(seed=0)
    for step in range(1, 501):
        now = states(env)
        push = now[:, 2] + 0.5 * now[:, 3] + 0.05 * now[:, 0] + 0.1 * now[:, 1] > 0
        _, _, terminated, truncated, infos = env.step(1 + push.astype(np.int64).reshape(3, 1))
        assert not terminated.any()
        assert truncated.tolist() == [step == 500] * 3
    assert infos["final_info"]["oncall"]["return_usd"].tolist() == [500.0] * 3


def test_keywords_of_scenarios_are_refused() -> None:
    """There is no demand to replace and no scale."""
    for keywords in ({"demand_rps": [1.0]}, {"scale": "small"}):
        with pytest.raises(OptionError, match="expected it to be left out"):
            OncallVectorEnv({"world": "cartpole"}, 1, **keywords)
