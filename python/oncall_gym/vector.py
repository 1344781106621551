"""`OncallVectorEnv`: many shifts at once, as a Gymnasium vector environment."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from oncall_gym._base import RENDER_MODES, Base, Infos, Split, columns, flag
from oncall_gym.errors import DtypeError, OptionError, ShapeError
from oncall_gym.scenario import ScenarioLike
from oncall_gym.spaces import ActionMode, View

__all__ = ["OncallVectorEnv"]

_MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}

Bools = npt.NDArray[np.bool_]
#: What a step gives.
Results: TypeAlias = tuple[
    npt.NDArray[np.float32], npt.NDArray[np.float64], Bools, Bools, dict[str, Any]
]


#: Numbers of an observation of all rows up to which a copy takes less time than a new array.
COPIED_MAX = 16384


class OncallVectorEnv(Base, VectorEnv[Any, Any, Any]):
    """`num_envs` shifts of one scenario, stepped by one call of the engine.

    Row `i` of a batch plays exactly what a single environment with its seed plays, whatever the
    batch size, the other rows and the number of threads.

    **Keywords.** All can be written as JSON, so that `make_vec(env.spec)` rebuilds the environment.

    =======================  ==================  ===================================================
    keyword                  default             meaning
    =======================  ==================  ===================================================
    `scenario`               `"steady"`          shipped name, path to a JSON file, its content as a
                                                 dict, or a list of names and paths, of which each
                                                 episode draws one
    `num_envs`               1                   rows
    `action_mode`            `"multi_discrete"`  `multi_discrete` (stops; 0 keeps), `box` (-1..1) or
                                                 `dict` (natural units; a dial left out keeps)
    `observation`            `"operator"`        `operator` (the dashboard) or `full` (adds state
                                                 and truths)
    `decision_interval_min`  None                minutes that an action stands in the fleet, 1 if
                                                 left out; presses happen in the first, rewards
                                                 add up
    `decision_interval_s`    None                seconds that an action stands in discovery, a
                                                 multiple of 10; 10 if left out
    `autoreset_mode`         `"next_step"`       `next_step`, `same_step` or `disabled`; also
                                                 Gymnasium's `AutoresetMode`
    `split`                  `"train"`           `train` or `test` episodes, disjoint
    `threads`                1                   threads that step a batch; changes no result
    `max_minutes`            None                length of an episode in the place of the scenario's
    `demand_rps`             None                exact demand of each minute in the place of the
                                                 drawn one, the last value held
    `scale`                  None                size of the fleet of discovery in the place of the
                                                 scenario's: `small`, `tenth` or `full`
    `copy`                   True                new arrays on every call; False reuses them
    `reward_terms`           False               rewards of shape (n, terms), minus each term in
                                                 dollars; see `reward_space`
    `cost_info`              False               `info["cost"]` on every step
    `info`                   `"events"`          `signals` adds all readouts and terms to every info
    `render_mode`            None                `ansi` or `rgb_array`
    =======================  ==================  ===================================================

    **Infos.** An ordinary step has none. Every key has a mask of the rows that it is for, with `_`
    in front; values of other rows are zero.

    ==================  ============================================================================
    key                 meaning
    ==================  ============================================================================
    `seed`              on a reset, also an automatic one: seed of the row
    `episode_number`    with it: number of the episode since the row was seeded
    `oncall`            on the end of an episode, its sums: `return_usd`, `steps`, `minutes`,
                        `budget_burned`, each reward term, `seed`, `episode_number`; in same-step
                        mode inside `final_info`
    `final_obs`         same-step mode, on an end: last observations, a plain array (n, k)
    `final_info`        same-step mode, on an end: infos of the ended episodes, `oncall` and `cost`
    `valid`             when some row only began an episode in this step: False for these rows,
                        whose action was ignored
    `cost`              with `cost_info`: share of the month's error budget burned in the step
    `signals`           with `info="signals"`: every readout in natural units, by name
    `terms`             with it, on steps: dollars paid for each term, by name
    ==================  ============================================================================

    Rewards are float64 dollars, flags `bool_`, observations float32 of order one, scaled by the
    engine.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": RENDER_MODES,
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    _step_bound: Callable[[Any], Results] | None
    _terms: npt.NDArray[np.float64] | None
    _cost: npt.NDArray[np.float64] | None
    _signals: npt.NDArray[np.float64] | None

    _buffer_names = (
        "_obs",
        "_rewards",
        "_terminated",
        "_truncated",
        "_final",
        "_terms",
        "_cost",
        "_signals",
        "_step_bound",
        "step",
    )

    def __init__(
        self,
        scenario: ScenarioLike = "steady",
        num_envs: int = 1,
        *,
        action_mode: ActionMode = "multi_discrete",
        observation: View = "operator",
        decision_interval_min: int | None = None,
        decision_interval_s: int | None = None,
        autoreset_mode: str | AutoresetMode = "next_step",
        split: Split = "train",
        threads: int = 1,
        max_minutes: int | None = None,
        demand_rps: Sequence[float] | None = None,
        scale: str | None = None,
        copy: bool = True,
        reward_terms: bool = False,
        cost_info: bool = False,
        info: Infos = "events",
        render_mode: str | None = None,
    ) -> None:
        """Builds the engine; see the class for the keywords.

        Raises:
            OptionError: a keyword is out of its range.
            ScenarioError: the scenario cannot be found, or is wrong; all problems are listed.
        """
        mode = _mode_name(autoreset_mode)
        self._copy = flag("copy", copy)
        self._open(
            scenario,
            num_envs=num_envs,
            action_mode=action_mode,
            observation=observation,
            decision_interval_min=decision_interval_min,
            decision_interval_s=decision_interval_s,
            autoreset_mode=mode,
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
        self.num_envs = self._core.num_envs
        #: What happens when an episode ends.
        self.autoreset_mode = _MODES[mode]
        self._same_step = mode == "same_step"
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        spec = self.world_spec
        self.single_observation_space = spec.observation_space()
        self.single_action_space = spec.action_space(action_mode)
        if self._reward_terms:
            self.single_reward_space = spec.reward_space()
            self.reward_space = batch_space(self.single_reward_space, self.num_envs)
        self._allocate()

    @property
    def copy(self) -> bool:
        """Whether every call gives new arrays."""
        return self._copy

    @copy.setter
    def copy(self, copy: bool) -> None:
        self._copy = flag("copy", copy)
        self._allocate()

    # Made when they are first asked for: the bounds of many rows take as much memory as the rows.

    @functools.cached_property
    def observation_space(self) -> Any:  # type: ignore[override]
        """The space of a batch of observations."""
        return batch_space(self.single_observation_space, self.num_envs)

    @functools.cached_property
    def action_space(self) -> Any:  # type: ignore[override]
        """The space of a batch of actions."""
        return batch_space(self.single_action_space, self.num_envs)

    def _allocate(self) -> None:
        """Buffers for the results of one call."""
        self._unbind()
        self._terms = self._cost = self._signals = None
        wants_more = self._reward_terms or self._info_signals or self._cost_info
        is_small = self.num_envs * self._core.obs_len <= COPIED_MAX
        if (is_small or not self.copy) and not (wants_more or self.render_mode is not None):
            # Arrays of the engine's own: it steps faster into those.
            self._obs, self._rewards, self._terminated, self._truncated, self._final = (
                self._core.bind(self._same_step)
            )
            self._step_bound = self._core.step_copied if self.copy else self._core.step_bound
            if type(self).step is OncallVectorEnv.step:
                # Without a frame of Python in between: a tenth of a call with one row.
                self.step = self._step_bound  # type: ignore[method-assign]
            return
        shape = (self.num_envs, self._core.obs_len)
        self._final = np.zeros(shape, np.float32) if self._same_step else None
        self._allocate_results()

    def _unbind(self) -> None:
        """Steps go into the arrays of this class again."""
        self._step_bound = None
        self.__dict__.pop("step", None)

    def _allocate_results(self) -> None:
        n = self.num_envs
        self._obs = np.empty((n, self._core.obs_len), np.float32)
        self._rewards = np.empty(n)
        self._terminated = np.empty(n, np.bool_)
        self._truncated = np.empty(n, np.bool_)
        wants_terms = self._reward_terms or self._info_signals
        self._terms = np.empty((n, len(self.world_spec.terms))) if wants_terms else None
        self._cost = np.empty(n) if self._cost_info else None
        self._signals = np.empty((n, len(self.world_spec.signals))) if self._info_signals else None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begins new episodes, in all rows or in those of `options["reset_mask"]`.

        Args:
            seed: An int gives row `i` a seed mixed from it and `i`. A list gives each row exactly
            its
                seed, and None in it keeps the row's own. None keeps them all, each going on to its
                next episode; rows never seeded get one from the system's entropy.
            options: `reset_mask`, `bool_` of shape (n,), at least one True: other rows stay as they
            are,
                and are returned as they stand. Never changed.

        Raises:
            OptionError: a seed is no whole number of 0..2**64, or the mask names no row.
            ShapeError, DtypeError: mask or list of seeds are of the wrong shape or type.
            OrderError: the first reset leaves rows out.
        """
        mask = self._mask(options)
        seeds = self._seeds(seed)
        if self.copy:
            self._allocate_results()
        self._core.reset_into(seeds, mask, self._obs, self._signals)
        if isinstance(seeds, int) and seed is not None:
            super().reset(seed=seeds)
        self._is_reset = True
        infos: dict[str, Any] = {}
        began = self._core.began()
        self._add_reset(infos, began)
        if self._signals is not None:
            self._add_table(infos, "signals", self.world_spec.signal_names, self._signals)
        if self.render_mode is not None:
            self._look(is_new=began)
        return self._obs, infos

    def step(self, actions: Any) -> Results:
        """Takes one decision in every row.

        Raises:
            ActionError: an action is out of its range; the message names row, dial and range.
            ShapeError, DtypeError: the actions are of the wrong shape, layout or dtype.
            OrderError: before the first reset, after `close`, or with autoreset disabled where an
                episode is over.
        """
        if self._step_bound is not None:
            return self._step_bound(actions)
        if self.copy:
            self._allocate_results()
        events = self._core.step_into(
            actions,
            self._obs,
            self._rewards,
            self._terminated,
            self._truncated,
            self._final,
            self._terms,
            self._cost,
            self._signals,
        )
        return self._results(events)

    def send(self, actions: Any) -> None:
        """Sends a step off and returns at once: a thread of the engine's own plays it.

        `recv` waits for it and gives what `step` would have given, bit for bit. Until then the
        environment takes no other call, apart from `close`. The actions are copied.

        Raises:
            ActionError, ShapeError, DtypeError: as `step`; nothing is under way then.
            OrderError: also where a step is under way already.
        """
        self._core.send(
            actions,
            final_obs=self._same_step,
            terms=self._terms is not None,
            cost=self._cost_info,
            signals=self._info_signals,
        )

    def recv(self) -> Results:
        """Waits for the step that was sent; the arrays are new, also where `copy` is False
        (a later `step` or `reset` then writes into them).

        Raises:
            OrderError: no step was sent, or the process was forked since.
        """
        (
            events,
            self._obs,
            self._rewards,
            self._terminated,
            self._truncated,
            self._final,
            self._terms,
            self._cost,
            self._signals,
        ) = self._core.recv()
        if not self.copy:
            # A later step writes into these.
            self._unbind()
        return self._results(events)

    def _results(self, events: int) -> Results:
        """What the buffers hold, with the infos of a step."""
        infos: dict[str, Any] = {}
        if events:
            self._core.add_events(infos, self._final, self._cost)
        if self._cost is not None:
            self._add_all(infos, "cost", self._cost)
        rewards = self._rewards
        if self._terms is not None:
            if self._signals is not None:
                spec = self.world_spec
                self._add_table(infos, "signals", spec.signal_names, self._signals)
                self._add_table(infos, "terms", spec.term_names, self._terms.copy())
            if self._reward_terms:
                # 0 - x rather than -x: a term of 0 stays a plain 0.
                rewards = np.subtract(0.0, self._terms, out=self._terms)
        if self.render_mode is not None:
            self._look(is_new=self._core.began() if events else None)
        return self._obs, rewards, self._terminated, self._truncated, infos

    def _add_all(self, infos: dict[str, Any], key: str, value: Any) -> None:
        infos[key] = value
        infos[f"_{key}"] = np.ones(self.num_envs, np.bool_)

    def _add_table(
        self, infos: dict[str, Any], key: str, names: Sequence[str], values: npt.NDArray[np.float64]
    ) -> None:
        table: dict[str, Any] = dict(columns(names, values))
        table.update({f"_{name}": np.ones(self.num_envs, np.bool_) for name in names})
        self._add_all(infos, key, table)

    def _add_reset(self, infos: dict[str, Any], began: Bools) -> None:
        """The seed of every episode that began."""
        rows = self._core.row_info()
        for key, values in (("seed", rows["seed"]), ("episode_number", rows["episode"])):
            infos[key] = np.where(began, values, np.uint64(0))
            infos[f"_{key}"] = began.copy()

    def _mask(self, options: dict[str, Any] | None) -> Bools | None:
        """The rows that are reset, or None for all; never takes it out of the options."""
        if options is None:
            return None
        unknown = sorted(set(options) - {"reset_mask"})
        if unknown:
            raise OptionError(
                f"options: unknown key {unknown[0]!r}: expected reset_mask or nothing"
            )
        mask = options.get("reset_mask")
        if mask is None and "reset_mask" in options:
            raise DtypeError("options['reset_mask'] = None: expected a numpy array of bool")
        return mask

    def _seeds(self, seed: int | Sequence[int | None] | None) -> int | list[int | None] | None:
        """Seeds as the engine takes them; rows that never had one get a fresh one."""
        if seed is None:
            return None if self._is_reset else self._entropy()
        if not isinstance(seed, Sequence | np.ndarray) or isinstance(seed, str | bytes):
            return as_seed(seed)
        seeds = [None if item is None else as_seed(item) for item in seed]
        if len(seeds) != self.num_envs:
            raise ShapeError(
                f"seed: {len(seeds)} seeds, expected {self.num_envs}, one for each row"
            )
        if self._is_reset:
            return seeds
        return [self._entropy() if item is None else item for item in seeds]

    def observations(self) -> npt.NDArray[np.float32]:
        """What every row shows now, in a new array; as after `set_state`."""
        return self._core.observations()

    def signals(self) -> dict[str, npt.NDArray[np.float64]]:
        """Every readout of every row in natural units, by name; truths included."""
        return dict(columns(self.world_spec.signal_names, self._core.signals()))

    def dials(self) -> dict[str, npt.NDArray[np.float64]]:
        """The dials of every row as they stand in natural units, by name; 0 for presses."""
        return dict(columns(self.world_spec.dial_names, self._core.dials()))

    def row_info(self) -> dict[str, npt.NDArray[Any]]:
        """Where every row stands: seed, episode, minute, length_min, pending, ended, is_seeded."""
        return self._core.row_info()

    def episode_stats(self, *, running: bool = False) -> dict[str, npt.NDArray[Any]]:
        """Sums over every row's last ended episode, or over the one that runs."""
        return self._core.episode_stats(running=running)

    # State

    def get_state(self, rows: Sequence[int] | None = None) -> list[bytes]:
        """States of some rows, or of all, in the middle of their episodes.

        Raises:
            OrderError: a row was never reset.
            OptionError: there is no such row.
        """
        return self._core.save(list(range(self.num_envs) if rows is None else rows))

    def set_state(self, states: Sequence[bytes], rows: Sequence[int] | None = None) -> None:
        """Puts states into some rows, or into all; all or none.

        A state fits any row of any environment of the same scenario, split and decision interval.
        `observations` shows the rows afterwards.

        Raises:
            StateError: bytes are no state of this environment, or are cut short.
            ShapeError: there are not as many states as rows.
        """
        numbers = list(range(self.num_envs) if rows is None else rows)
        self._core.load(numbers, list(states))
        self._is_reset = bool(self._core.row_info()["is_seeded"].all())

    def copy_rows(self, source: Sequence[int], target: Sequence[int]) -> None:
        """Copies rows onto others, `source[k]` onto `target[k]`: a branch without bytes."""
        self._core.copy_rows(list(source), list(target))
        self._is_reset = bool(self._core.row_info()["is_seeded"].all())

    # As Gymnasium's own vector environments have them

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """A method's result, or an attribute, once for each row."""
        value = getattr(self, name)
        result = value(*args, **kwargs) if callable(value) else value
        if name == "render":
            return tuple(result)
        return (result,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute, once for each row."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute; the rows are one environment, so that all values must be equal."""
        rows = list(values) if isinstance(values, list | tuple) else [values]
        if len(rows) not in (1, self.num_envs) or any(value != rows[0] for value in rows):
            raise OptionError(f"{name} = {values!r}: expected one value, the same for all rows")
        setattr(self, name, rows[0])

    def render(self) -> tuple[Any, ...]:
        """The dashboard of every row: a text each (`ansi`) or an image each (`rgb_array`)."""
        return self._frames()

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the engine; every later call raises `OrderError`."""
        # Older Gymnasiums close what is deleted, also where the constructor raised.
        if hasattr(self, "_core"):
            self._core.close()


def _mode_name(mode: str | AutoresetMode) -> str:
    """`next_step`, `same_step` or `disabled`, out of that, Gymnasium's enum or the enum's value."""
    for name, member in _MODES.items():
        if mode in (name, member, member.value):
            return name
    raise OptionError(f"autoreset_mode = {mode!r}: expected one of {', '.join(_MODES)}")


def as_seed(seed: object) -> int:
    """A Python int; numpy's whole numbers will do as well."""
    try:
        number = operator.index(seed)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number < 2**64:
        raise OptionError(f"seed = {seed!r}: expected a whole number of 0..2**64-1")
    return number
