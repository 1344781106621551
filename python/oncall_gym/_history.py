"""What a picture of a shift is drawn from: the readouts of its last minutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .spaces import Spec

__all__ = ["Header", "History"]


@dataclass(frozen=True)
class Header:
    """What stands above the picture.

    Attributes:
        scenario: name of the scenario.
        seed: seed of the row.
        episode: number of the row's episode.
        length_min: minutes of the shift.
        page_burn: burn rate at which the pager rings, drawn as a line; None leaves it out.
    """

    scenario: str
    seed: int
    episode: int
    length_min: int
    page_burn: float | None = None


class History:
    """A ring of the last minutes of one row's signals, in natural units, and dollars so far.

    Attributes:
        capacity: minutes kept.
        dollars: each reward term summed over the episode so far, in the order of `spec.terms`.
    """

    def __init__(self, spec: Spec, capacity: int = 240) -> None:
        """An empty history of `capacity` (at least 2) rows."""
        if capacity < 2:
            raise ValueError(f"capacity: expected at least 2, got {capacity}")
        self.capacity = capacity
        self._index = {signal.name: i for i, signal in enumerate(spec.signals)}
        self._rows = np.zeros((capacity, len(spec.signals)))
        self.dollars: npt.NDArray[np.float64] = np.zeros(len(spec.terms))
        self._count = 0

    def __len__(self) -> int:
        """Rows kept."""
        return min(self._count, self.capacity)

    def clear(self) -> None:
        """Forgets everything; to be called when an episode begins."""
        self._count = 0
        self.dollars[:] = 0.0

    def append(
        self,
        signals: npt.NDArray[np.float64] | Sequence[float],
        dollars: npt.NDArray[np.float64] | Sequence[float] | None = None,
    ) -> None:
        """Adds one row: all signals in the order of the spec, and each term's dollars so far."""
        self._rows[self._count % self.capacity] = signals
        self._count += 1
        if dollars is not None:
            self.dollars[:] = dollars

    def has(self, name: str) -> bool:
        """Whether there is a signal of that name."""
        return name in self._index

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """A signal's values, the oldest first."""
        column = self._rows[:, self._index[name]]
        if self._count <= self.capacity:
            return column[: self._count].copy()
        return np.roll(column, -(self._count % self.capacity))

    def last(self, name: str, default: float = 0.0) -> float:
        """A signal's latest value; `default` without such a signal or any row."""
        if not self._count or name not in self._index:
            return default
        return float(self._rows[(self._count - 1) % self.capacity, self._index[name]])
