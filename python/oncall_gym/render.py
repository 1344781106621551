"""Pictures of a shift: a dashboard of the readouts and their recent history.

`draw` makes an image (it needs matplotlib: `pip install 'oncall-gym[render]'`), `ansi` a text.
The environments use `Dashboards`; with a `History` of your own rows you can call the two directly.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._board_image import draw
from ._board_text import ansi
from ._history import Header, History

if TYPE_CHECKING:
    from ._base import Base

__all__ = ["Dashboards", "Header", "History", "ansi", "draw"]

PAGE_BURN = 14.4
"""Burn at which the pager rings where a scenario says nothing else."""


class Dashboards:
    """What the rows of an environment have shown since their episodes began."""

    def __init__(self, env: Base, capacity: int = 240) -> None:
        """Remembers up to `capacity` decisions of each row; nothing is seen before `look`."""
        self._env = env
        self._histories = [History(env.world_spec, capacity) for _ in range(env.num_envs)]
        self._page_burns: dict[str, float | None] = {}

    def look(self, is_new: npt.NDArray[np.bool_] | None = None) -> None:
        """Adds the rows as they stand; those that began an episode start over."""
        signals = self._env._core.signals()
        stats = self._env._core.episode_stats(running=True)
        dollars = np.stack([stats[name] for name in self._env.world_spec.term_names], axis=1)
        for row, history in enumerate(self._histories):
            if is_new is not None and is_new[row]:
                history.clear()
            history.append(signals[row], dollars[row])

    def frames(self) -> tuple[Any, ...]:
        """A text or an image for each row, as the environment's `render_mode` says."""
        rows = self._env._core.row_info()
        spec = self._env.world_spec
        board = ansi if self._env.render_mode == "ansi" else draw
        frames = []
        for row, history in enumerate(self._histories):
            scenario = self._env.scenario_of(row)
            header = Header(
                scenario,
                int(rows["seed"][row]),
                int(rows["episode"][row]),
                int(rows["length_min"][row]),
                self._page_burn(row, scenario),
            )
            frames.append(board(history, spec, header))
        return tuple(frames)

    def _page_burn(self, row: int, scenario: str) -> float | None:
        """The burn at which a row's pager rings; None where it is drawn anew each episode."""
        if scenario not in self._page_burns:
            from . import _native

            shipped = _native.scenario_text(scenario)
            self._page_burns[scenario] = _stated_page_burn(shipped or self._env._text.text)
        return self._page_burns[scenario]


def _stated_page_burn(text: str) -> float | None:
    """`slo.page_burn` of a scenario, where it is a plain number or left out."""
    content = json.loads(text)
    if "mixture" in content:
        return None
    value = content.get("slo", {}).get("page_burn", PAGE_BURN)
    return float(value) if isinstance(value, int | float) else None
