"""What both environments share: the engine, its state, and how to look at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from oncall_gym import _native
from oncall_gym.errors import OptionError, OrderError
from oncall_gym.scenario import ScenarioLike, ScenarioText, resolve
from oncall_gym.spaces import ActionMode, Spec, View

__all__ = ["RENDER_MODES", "Base", "Infos", "Split"]

Split: TypeAlias = Literal["train", "test"]
Infos: TypeAlias = Literal["events", "signals"]

RENDER_MODES = ["ansi", "rgb_array"]

#: Decisions that a dashboard remembers, at least; seconds, where ticks are shorter than a minute.
HISTORY_MIN = 240
HISTORY_S = 80 * 60


def one_of(name: str, value: object, choices: Sequence[object]) -> None:
    """Refuses a value that is none of the choices."""
    if value not in choices:
        expected = ", ".join(str(choice) for choice in choices)
        raise OptionError(f"{name} = {value!r}: expected one of {expected}")


def flag(name: str, value: object) -> bool:
    """Refuses what is no bool: a 1 or a "no" there is a slip."""
    if not isinstance(value, bool | np.bool_):
        raise OptionError(f"{name} = {value!r}: expected True or False")
    return bool(value)


def _rates(demand_rps: Sequence[float]) -> list[float]:
    """Plain numbers, which can be pickled and written as JSON."""
    try:
        return [float(rate) for rate in demand_rps]
    except (TypeError, ValueError) as error:
        raise OptionError(f"demand_rps: expected a list of rates in req/s: {error}") from error


class Base:
    """An engine with what both environments do alike."""

    num_envs: int
    np_random: np.random.Generator
    metadata: dict[str, Any]

    def _open(
        self,
        scenario: ScenarioLike,
        *,
        num_envs: int,
        action_mode: ActionMode,
        observation: View,
        decision_interval_min: int | None,
        decision_interval_s: int | None,
        autoreset_mode: str,
        split: Split,
        threads: int,
        max_minutes: int | None,
        demand_rps: Sequence[float] | None,
        scale: str | None,
        reward_terms: bool,
        cost_info: bool,
        info: Infos,
        render_mode: str | None,
    ) -> None:
        """Checks every keyword and builds the engine."""
        one_of("info", info, ["events", "signals"])
        one_of("render_mode", render_mode, [None, *RENDER_MODES])
        for name, value in (
            ("action_mode", action_mode),
            ("observation", observation),
            ("split", split),
        ):
            if not isinstance(value, str):
                raise OptionError(f"{name} = {value!r}: expected a name")
        if scale is not None and not isinstance(scale, str):
            raise OptionError(f"scale = {scale!r}: expected small, tenth, full or None")
        self._text: ScenarioText = resolve(scenario)
        self._core_kwargs: dict[str, Any] = {
            "num_envs": num_envs,
            "action_mode": action_mode,
            "observation": observation,
            "decision_interval_min": decision_interval_min,
            "decision_interval_s": decision_interval_s,
            "autoreset_mode": autoreset_mode,
            "split": split,
            "threads": threads,
            "max_minutes": max_minutes,
            "demand_rps": None if demand_rps is None else _rates(demand_rps),
            "scale": scale,
        }
        self._reward_terms = flag("reward_terms", reward_terms)
        self._cost_info = flag("cost_info", cost_info)
        self._info_signals = info == "signals"
        self.action_mode: ActionMode = action_mode
        self.render_mode: str | None = render_mode
        self._build()
        self._dashboards: Any = None

    def _build(self) -> None:
        text = self._text
        self._core = _native.VecCore(
            text.text, file=text.file, files=text.files, **self._core_kwargs
        )
        #: Names, units, ranges and meanings of everything that goes in or comes out.
        self.world_spec = Spec.from_core(self._core)
        self._is_reset = False

    # Looking

    def natural(self, observation: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float64]]:
        """An observation, or a batch of them, in natural units by name.

        The inverse of the scaling; a value beyond a signal's range comes back as the end of it.
        """
        rows = np.ascontiguousarray(observation, dtype=np.float32)
        values = self._core.natural(rows.reshape(-1, rows.shape[-1]) if rows.ndim else rows)
        columns = values.reshape(rows.shape)
        return {name: columns[..., i] for i, name in enumerate(self.world_spec.observation)}

    def drawn(self, row: int = 0) -> dict[str, float]:
        """What was drawn for a row's episode, truths that the operator does not see included."""
        return dict(self._core.drawn(row))

    def scenario_of(self, row: int = 0) -> str:
        """Name of the scenario that a row plays; of a mixture, the one that was drawn."""
        return self._core.scenario_of(row)

    def digest(self, row: int = 0) -> int:
        """Hash of everything that a row's future depends on, bit for bit."""
        return self._core.digest(row)

    def digest_drawn(self, row: int = 0) -> int:
        """Hash of what was drawn for a row's episode: equal means the same morning."""
        return self._core.digest_drawn(row)

    @property
    def threads(self) -> int:
        """Threads that step a batch; changes the speed and nothing else."""
        return self._core.num_threads

    @threads.setter
    def threads(self, threads: int) -> None:
        self._core.set_num_threads(threads)
        self._core_kwargs["threads"] = threads

    # Seeds

    def _entropy(self) -> int:
        """A fresh seed out of `np_random`, which is itself seeded from the system unless told."""
        bits = 32 if self.world_spec.generator == "mulberry32" else 64
        return int(self.np_random.integers(2**bits, dtype=np.uint64 if bits == 64 else np.int64))

    # State

    def _save(self) -> list[tuple[int, bytes]]:
        """The states of all rows that have one."""
        seeded = np.flatnonzero(self._core.row_info()["is_seeded"]).tolist()
        return list(zip(seeded, self._core.save(seeded), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the engine and buffers, and the rows' states in their place."""
        if getattr(self, "closed", False):
            raise OrderError("a closed environment cannot be pickled or copied")
        state = {**self.__dict__, "_saved": self._save()}
        for name in ("_core", "world_spec", "_dashboards", *self._buffer_names):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Builds the engine anew and puts the rows back, in the middle of their episodes."""
        saved = state.pop("_saved")
        self.__dict__.update(state)
        is_reset = self._is_reset
        self._build()
        self._dashboards = None
        if saved:
            rows, states = zip(*saved, strict=True)
            self._core.load(list(rows), list(states))
        self._is_reset = is_reset
        self._allocate()

    _buffer_names: tuple[str, ...] = ()

    def _allocate(self) -> None:
        raise NotImplementedError

    # Dashboard

    def _look(self, *, is_new: npt.NDArray[np.bool_] | None = None) -> None:
        """Remembers the readouts for the dashboard, if one was asked for."""
        if self.render_mode is None:
            return
        if self._dashboards is None:
            from oncall_gym.render import Dashboards

            self._dashboards = Dashboards(
                self, max(HISTORY_MIN, HISTORY_S // self.world_spec.tick_s)
            )
        self._dashboards.look(is_new)

    def _frames(self) -> tuple[Any, ...]:
        if self.render_mode is None:
            raise OrderError(
                "render: the environment was made without a render_mode: expected ansi or rgb_array"
            )
        if not self._is_reset:
            raise OrderError("render: never reset: expected a reset first")
        if self._dashboards is None:
            self._look()
        frames: Callable[[], tuple[Any, ...]] = self._dashboards.frames
        return frames()


def columns(
    names: Sequence[str], values: npt.NDArray[np.float64]
) -> Mapping[str, npt.NDArray[np.float64]]:
    """The columns of a matrix by name, without copying them."""
    return {name: values[..., i] for i, name in enumerate(names)}
