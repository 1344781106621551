"""`OncallEnv`: one shift, as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from oncall_gym._base import RENDER_MODES, Base, Infos, Split, columns
from oncall_gym.errors import OptionError
from oncall_gym.scenario import ScenarioLike
from oncall_gym.spaces import ActionMode, View
from oncall_gym.vector import as_seed

__all__ = ["OncallEnv"]


class OncallEnv(Base, gymnasium.Env[Any, Any]):
    """One shift: an `OncallVectorEnv` with one row, and plain numbers in the place of arrays.

    `reset(seed=s)` plays exactly what a row of a vector environment plays whose seed is `s`.

    The keywords are those of `OncallVectorEnv` apart from `num_envs`, `autoreset_mode` and `copy`:
    the caller resets, and every call gives new arrays. So are the keys of the infos, without masks,
    each a plain number or a dict of them:

    ==================  ============================================================================
    key                 meaning
    ==================  ============================================================================
    `seed`              on a reset: seed of the shift
    `episode_number`    on a reset: number of the episode since it was seeded
    `oncall`            on the end of the episode, its sums: `return_usd`, `steps`, `minutes`,
                        `budget_burned`, each reward term, `seed`, `episode_number`
    `cost`              with `cost_info`: share of the month's error budget burned in the step
    `signals`           with `info="signals"`: every readout in natural units, by name
    `terms`             with it, on steps: dollars paid for each term, by name
    ==================  ============================================================================
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": 10}  # noqa: RUF012

    _buffer_names = ("_reward", "_terminated", "_truncated", "_terms", "_cost", "_signals")

    def __init__(
        self,
        scenario: ScenarioLike = "steady",
        *,
        action_mode: ActionMode = "multi_discrete",
        observation: View = "operator",
        decision_interval_min: int | None = None,
        decision_interval_s: int | None = None,
        split: Split = "train",
        threads: int = 1,
        max_minutes: int | None = None,
        demand_rps: Sequence[float] | None = None,
        scale: str | None = None,
        reward_terms: bool = False,
        cost_info: bool = False,
        info: Infos = "events",
        render_mode: str | None = None,
    ) -> None:
        """Builds the engine; see `OncallVectorEnv` for the keywords.

        Raises:
            OptionError: a keyword is out of its range.
            ScenarioError: the scenario cannot be found, or is wrong; all problems are listed.
        """
        self.num_envs = 1
        self.closed = False
        self._open(
            scenario,
            num_envs=1,
            action_mode=action_mode,
            observation=observation,
            decision_interval_min=decision_interval_min,
            decision_interval_s=decision_interval_s,
            autoreset_mode="disabled",
            split=split,
            threads=threads,
            max_minutes=max_minutes,
            demand_rps=demand_rps,
            scale=scale,
            reward_terms=reward_terms,
            cost_info=cost_info,
            info=info,
            render_mode=render_mode,
        )
        spec = self.world_spec
        self.observation_space = spec.observation_space()
        self.action_space = spec.action_space(action_mode)
        if self._reward_terms:
            self.reward_space = spec.reward_space()
        self._allocate()

    def _allocate(self) -> None:
        """Where the engine writes what is then given out as plain numbers."""
        spec = self.world_spec
        self._reward, self._terminated = np.empty(1), np.empty(1, np.bool_)
        self._truncated = np.empty(1, np.bool_)
        wants_terms = self._reward_terms or self._info_signals
        self._terms = np.empty((1, len(spec.terms))) if wants_terms else None
        self._cost = np.empty(1) if self._cost_info else None
        self._signals = np.empty((1, len(spec.signals))) if self._info_signals else None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begins a new shift.

        Args:
            seed: The shift's seed, exactly; episode 0 of it. None goes on to the next episode of
            the
                seed it has, or takes one from the system's entropy.
            options: There are none.

        Raises:
            OptionError: the seed is no whole number of 0..2**64, or an option is given.
        """
        if options:
            raise OptionError(f"options: unknown key {next(iter(options))!r}: expected none")
        number = None if seed is None else as_seed(seed)
        # Gymnasium's generator is seeded alike; the engine's draws do not come from it.
        super().reset(seed=number)
        if number is None and not self._is_reset:
            number = self._entropy()
        obs = np.empty(self._core.obs_len, np.float32)
        seeds = None if number is None else [number]
        self._core.reset_into(seeds, None, obs, self._signals)
        self._is_reset = True
        rows = self._core.row_info()
        infos: dict[str, Any] = {
            "seed": int(rows["seed"][0]),
            "episode_number": int(rows["episode"][0]),
        }
        if self._signals is not None:
            infos["signals"] = _numbers(self.world_spec.signal_names, self._signals)
        if self.render_mode is not None:
            self._look(is_new=np.ones(1, np.bool_))
        return obs, infos

    def step(self, action: Any) -> tuple[npt.NDArray[np.float32], Any, bool, bool, dict[str, Any]]:
        """Takes one decision.

        Raises:
            ActionError: the action is out of its range; the message names dial and range.
            ShapeError, DtypeError: the action is of the wrong shape, layout or dtype.
            OrderError: before the first reset, after the end of an episode, or after `close`.
        """
        obs = np.empty(self._core.obs_len, np.float32)
        events = self._core.step_into(
            action,
            obs,
            self._reward,
            self._terminated,
            self._truncated,
            None,
            self._terms,
            self._cost,
            self._signals,
        )
        infos: dict[str, Any] = {}
        if events:
            stats = self._core.episode_stats()
            stats["episode_number"] = stats.pop("episode")
            infos["oncall"] = {key: value[0].item() for key, value in stats.items()}
        if self._cost is not None:
            infos["cost"] = self._cost.item()
        reward: Any = self._reward.item()
        if self._terms is not None:
            if self._signals is not None:
                infos["signals"] = _numbers(self.world_spec.signal_names, self._signals)
                infos["terms"] = _numbers(self.world_spec.term_names, self._terms)
            if self._reward_terms:
                reward = 0.0 - self._terms[0]
        if self.render_mode is not None:
            self._look()
        return obs, reward, self._terminated.item(), self._truncated.item(), infos

    def observations(self) -> npt.NDArray[np.float32]:
        """What the shift shows now, in a new array; as after `set_state`."""
        observations: npt.NDArray[np.float32] = self._core.observations()
        return np.ascontiguousarray(observations[0])

    def signals(self) -> dict[str, float]:
        """Every readout in natural units, by name; truths included."""
        return _numbers(self.world_spec.signal_names, self._core.signals())

    def dials(self) -> dict[str, float]:
        """The dials as they stand in natural units, by name; 0 for presses."""
        return _numbers(self.world_spec.dial_names, self._core.dials())

    def row_info(self) -> dict[str, Any]:
        """Where the shift stands: seed, episode, minute, length_min, ended and more."""
        return {key: value[0].item() for key, value in self._core.row_info().items()}

    def get_state(self) -> bytes:
        """The shift's state, in the middle of its episode.

        Raises:
            OrderError: it was never reset.
        """
        return self._core.save([0])[0]

    def set_state(self, state: bytes) -> None:
        """Goes on from a state of any environment of the same scenario, split and interval.

        Raises:
            StateError: the bytes are no such state, or are cut short.
        """
        self._core.load([0], [state])
        self._is_reset = True

    def render(self) -> Any:
        """The dashboard: a text (`ansi`) or an image (`rgb_array`)."""
        return self._frames()[0]

    def close(self) -> None:
        """Frees the engine; every later call but this one raises `OrderError`."""
        self._core.close()
        self.closed = True


def _numbers(names: Sequence[str], row: npt.NDArray[np.float64]) -> dict[str, float]:
    return {name: column.item() for name, column in columns(names, row).items()}
