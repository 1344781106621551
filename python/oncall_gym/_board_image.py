"""The dashboard as a picture, drawn with matplotlib.

The still parts (frames, grids, axes, labels) are drawn once and kept as a bitmap for as long as no
axis has to change; a frame then only draws the lines and the changing texts over it, which is about
ten times as quick as drawing a figure.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ._board_text import dial_text, minute_signal, number, title, unseen_regions
from ._history import Header, History

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from .spaces import Spec

__all__ = ["draw"]

DPI = 100
# Okabe and Ito's colours, which people with a colour vision deficiency can tell apart.
BLUE, ORANGE, GREEN, RED, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#777777",
)
INK, PAPER, PANEL, GRID = "#222222", "#f4f5f7", "#ffffff", "#dddddd"
SHARE_TOP = 120.0
"""Upper end of a panel in per cent: a line at 100 % stands clear of the legend."""
LOW_SHARE_TOP = 145.0
"""The same of panels that are less high."""
WINDOW_MIN = 240
"""Longest stretch of a shift that a panel shows; longer shifts move on by a quarter of it."""


@dataclass(frozen=True)
class Line:
    """One line of a panel."""

    signal: str
    label: str
    colour: str
    factor: float = 1.0
    style: str = "-"
    width: float = 1.6


@dataclass(frozen=True)
class Panel:
    """One diagram.

    Attributes:
        name: above it.
        unit: behind the values.
        lines: what is drawn.
        least: upper end of the axis where all values are smaller.
        floor: lower end of a logarithmic axis; 0 for a linear one.
        mark: a level drawn as a dotted line.
        shown: which of the lines' latest values stands at the top right.
    """

    name: str
    unit: str
    lines: tuple[Line, ...]
    least: float
    floor: float = 0.0
    mark: float | None = None
    shown: Literal["first", "last", "most", "least"] = "first"

    def value(self, history: History) -> float:
        """The latest value that stands at the top right, in the panel's unit."""
        values = [history.last(line.signal) * line.factor for line in self.lines]
        if self.shown in ("most", "least"):
            return max(values) if self.shown == "most" else min(values)
        return values[-1 if self.shown == "last" else 0]


def _regions(signal: str, factor: float = 1.0) -> tuple[Line, ...]:
    """A line for each region."""
    colours = (BLUE, ORANGE, GREEN)
    return tuple(
        Line(f"{signal}_r{region}", f"r{region}", colour, factor, width=1.3)
        for region, colour in enumerate(colours)
    )


FLEET = (
    Panel(
        "Demand",
        "req/s",
        (
            Line("offered_rps", "offered", BLUE),
            Line("admitted_rps", "admitted", ORANGE, style="--"),
        ),
        1000,
    ),
    Panel(
        "Instances",
        "",
        (
            Line("serving", "serving", BLUE),
            Line("booting", "booting", ORANGE),
            Line("dial_min_instances", "minimum", GREY, style=":"),
        ),
        20,
    ),
    Panel(
        "Utilisation",
        "%",
        (
            Line("utilization", "busy", BLUE, 100),
            Line("dial_target_utilization", "target", GREY, 100, ":"),
        ),
        SHARE_TOP,
    ),
    Panel("Latency p99", "ms", (Line("p99_ms", "p99", BLUE),), 10_000, 100, 1000),
    Panel(
        "Errors",
        "x",
        (
            Line("burn", "burn", SKY, width=1.2),
            Line("burn_5min", "5 min", ORANGE),
            Line("burn_1h", "1 h", RED),
        ),
        10_000,
        0.1,
        shown="last",
    ),
    Panel("Error budget left", "%", (Line("budget_left", "left", GREEN, 100),), SHARE_TOP),
    Panel(
        "Cache and database",
        "%",
        (
            Line("cache_hit", "hits", BLUE, 100),
            Line("db_utilization", "database", ORANGE, 100),
        ),
        SHARE_TOP,
    ),
)


DISCOVERY = (
    Panel(
        "Error burn",
        "x",
        (Line("burn_5min", "5 min", ORANGE), Line("burn_1h", "1 h", RED)),
        10_000,
        0.1,
        14.4,
        "last",
    ),
    Panel(
        "Withdrawals",
        "s, p99",
        (Line("withdrawal_s_p99", "p99", BLUE), Line("withdrawal_s_p50", "p50", SKY, width=1.2)),
        100,
        0.1,
        3,
    ),
    Panel(
        "Removals of the dead",
        "s, p99",
        (Line("removal_s_p99", "p99", BLUE), Line("removal_s_p50", "p50", SKY, width=1.2)),
        100,
        0.1,
        15,
    ),
    Panel("READY instances", "%", _regions("ready_share", 100), LOW_SHARE_TOP, shown="least"),
    Panel("Probes that fail", "%", _regions("probe_failure_share", 100), 5, shown="most"),
    Panel("Connected proxies", "%", _regions("connected_share", 100), LOW_SHARE_TOP, shown="least"),
    Panel("Write latency p99", "ms", _regions("write_latency_ms_p99"), 10_000, 1, shown="most"),
    Panel("Relay queue p99", "ms", _regions("relay_queue_ms_p99"), 10_000, 1, shown="most"),
    Panel(
        "Budgets left",
        "%",
        (
            Line("budget_left", "requests", GREEN, 100),
            Line("withdrawal_budget_left", "withdrawals", BLUE, 100),
            Line("removal_budget_left", "removals", ORANGE, 100),
        ),
        LOW_SHARE_TOP,
        shown="least",
    ),
)

PANELS = {"fleet": FLEET, "discovery": DISCOVERY}

FEW_DIALS = 12
"""More dials than these take the room of two panels, in three columns."""
BURNING = 14.4
"""Burn over five minutes and an hour from which the badge of a world without a pager warns."""


def draw(
    history: History, spec: Spec, header: Header, *, width: int = 960, height: int = 640
) -> npt.NDArray[np.uint8]:
    """A picture of a shift so far.

    Args:
        history: what to show; at least one row.
        spec: names of signals, dials and terms.
        header: scenario, seed and length of the shift.
        width: pixels, at least 640.
        height: pixels, at least 400.

    Returns:
        An image of shape (height, width, 3), a new array.

    Raises:
        ImportError: matplotlib is missing.
        ValueError: there is nothing to show, or the picture is too small to be read.
    """
    if not len(history):
        raise ValueError("history: expected at least one row, got none")
    if width < 640 or height < 400:
        raise ValueError(
            f"width, height: expected at least 640 and 400 pixels, got {width}, {height}"
        )
    panels = tuple(
        p for p in PANELS[spec.world] if all(history.has(line.signal) for line in p.lines)
    )
    terms = tuple(term.label for term in spec.terms)
    dials = tuple(dial.label for dial in spec.dials)
    with _LOCK:
        return _board(width, height, panels, terms, dials).frame(history, spec, header)


_LOCK = threading.Lock()


@lru_cache(maxsize=4)
def _board(
    width: int,
    height: int,
    panels: tuple[Panel, ...],
    terms: tuple[str, ...],
    dials: tuple[str, ...],
) -> Board:
    return Board(width, height, panels, terms, dials)


class Board:
    """A figure with its still parts kept as a bitmap."""

    def __init__(
        self,
        width: int,
        height: int,
        panels: tuple[Panel, ...],
        terms: tuple[str, ...],
        dials: tuple[str, ...],
    ) -> None:
        """Lays the panels out, three in a row; after them the dials and the dollars."""
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError(
                "render_mode='rgb_array' needs matplotlib: pip install 'oncall-gym[render]'"
            ) from error
        self.panels = panels
        self.figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor=PAPER)
        # matplotlib leaves most methods of a canvas without types.
        self.canvas: Any = FigureCanvasAgg(self.figure)
        is_wide = len(dials) > FEW_DIALS
        count = len(panels)
        rows = math.ceil((count + (3 if is_wide else 2)) / 3)
        grid = self.figure.add_gridspec(
            rows,
            3,
            left=0.05,
            right=0.985,
            top=0.845,
            bottom=0.03 if is_wide else 0.06,
            hspace=0.5 if is_wide else 0.42,
            wspace=0.2,
            height_ratios=[1.0] * (rows - 1) + [1.7 if is_wide else 1.0],
        )
        places = [self.figure.add_subplot(grid[i // 3, i % 3]) for i in range(count)]
        if is_wide:
            table = self.figure.add_subplot(grid[count // 3, :2])
        else:
            table = self.figure.add_subplot(grid[count // 3, count % 3])
        last = self.figure.add_subplot(grid[rows - 1, 2])
        self.moving: list[Artist] = []
        self.lines: list[list[Any]] = []
        self.values: list[Any] = []
        for axes, panel in zip(places, panels, strict=False):
            self._panel(axes, panel)
        self.axes = places
        self.dial_texts = self._table(table, "Dials", dials, 3 if is_wide else 1)
        self._dollars(last, terms)
        self.ring = self._ring()
        text = self.figure.text
        text(0.985, 0.893, "across: minute of the episode", fontsize=8, color=GREY, ha="right")
        self.heading = self._moves(
            text(0.015, 0.945, "", fontsize=12.5, fontweight="bold", color=INK, va="center")
        )
        self.notes = self._moves(text(0.015, 0.893, "", fontsize=9.5, color=RED))
        self.badge = self._moves(
            text(0.98, 0.95, "", fontsize=12, fontweight="bold", color="white", ha="right")
        )
        self.badge.set_verticalalignment("center")
        # Two bitmaps: what changes with the axes only, and that with the dials over it.
        self.still: Any = None
        self.with_dials: Any = None
        self.limits: tuple[Any, ...] = ()
        self.dials: list[str] = []

    def _moves(self, artist: Any) -> Any:
        """Leaves an artist out of the still bitmap."""
        artist.set_animated(True)
        self.moving.append(artist)
        return artist

    def _frame(self, axes: Axes, name: str) -> None:
        axes.set_facecolor(PANEL)
        axes.set_title(name, fontsize=9.5, fontweight="bold", loc="left", color=INK, pad=3)
        for spine in axes.spines.values():
            spine.set_color(GRID)
        axes.tick_params(labelsize=7.5, length=2, colors=INK, pad=2)

    def _panel(self, axes: Axes, panel: Panel) -> None:
        self._frame(axes, panel.name)
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        if panel.floor:
            axes.set_yscale("log")
            axes.minorticks_off()
        if panel.mark is not None:
            axes.axhline(panel.mark, color=RED, linewidth=0.9, linestyle=":")
        lines = [
            self._moves(
                axes.plot(
                    [],
                    [],
                    line.style,
                    color=line.colour,
                    linewidth=line.width,
                    label=line.label,
                    drawstyle="steps-post" if panel.name == "Instances" else "default",
                )[0]
            )
            for line in panel.lines
        ]
        self.lines.append(lines)
        if len(lines) > 1:
            legend = axes.legend(
                loc="upper left",
                fontsize=7,
                ncols=len(lines),
                frameon=False,
                handlelength=1.2,
                columnspacing=0.8,
                borderpad=0.1,
                borderaxespad=0.2,
                handletextpad=0.4,
            )
            legend.set_zorder(1)
        value = axes.text(
            1.0, 1.02, "", transform=axes.transAxes, ha="right", va="bottom", fontsize=9, color=INK
        )
        self.values.append(self._moves(value))

    def _table(self, axes: Axes, name: str, labels: tuple[str, ...], columns: int) -> list[Any]:
        """Names from the top down, then in the next column; gives the texts for their values."""
        self._frame(axes, name)
        axes.set_xticks([])
        axes.set_yticks([])
        texts = []
        rows = math.ceil(len(labels) / columns)
        for i, label in enumerate(labels):
            column, y = i // rows, 1 - (i % rows + 0.5) / rows
            place: dict[str, Any] = {
                "transform": axes.transAxes,
                "fontsize": 8.5 if columns == 1 else 6.8,
                "va": "center",
                "color": INK,
            }
            edge = 0.03 if columns == 1 else 0.012
            axes.text((column + edge) / columns + edge / 2, y, label, **place)
            right = (column + 1 - edge) / columns - edge / 2
            texts.append(
                axes.text(right, y, "", ha="right", fontweight="bold", animated=True, **place)
            )
        return texts

    def _dollars(self, axes: Axes, labels: tuple[str, ...]) -> None:
        self._frame(axes, "Dollars so far")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlim(0, 1)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        bars = axes.barh(range(len(labels)), [0.0] * len(labels), height=0.55, left=0.54)
        for i, label in enumerate(labels):
            axes.text(0.02, i, label, fontsize=8.3, va="center", color=INK)
        self.bars = [self._moves(bar) for bar in bars]
        for bar in self.bars:
            bar.set_color(SKY)
        self.bar_texts = [
            self._moves(axes.text(0.98, i, "", fontsize=8.5, ha="right", va="center", color=INK))
            for i in range(len(labels))
        ]
        self.total = self._moves(
            axes.text(
                1.0,
                1.02,
                "",
                transform=axes.transAxes,
                ha="right",
                va="bottom",
                fontsize=9,
                fontweight="bold",
                color=INK,
            )
        )

    def _ring(self) -> tuple[Any, Any] | None:
        """Marks of the minutes in which the pager rang, and the level from which it rings."""
        names = [panel.name for panel in self.panels]
        if "Errors" not in names:
            return None
        axes = self.axes[names.index("Errors")]
        axes.set_title("Error burn", fontsize=9.5, fontweight="bold", loc="left", pad=3)
        rang = axes.plot([], [], "s", color=RED, markersize=2.5, clip_on=False)[0]
        level = axes.axhline(1.0, color=RED, linewidth=1.0, linestyle=":")
        return self._moves(rang), self._moves(level)

    def frame(self, history: History, spec: Spec, header: Header) -> npt.NDArray[np.uint8]:
        """One picture."""
        x = history.column(minute_signal(history))
        minute = float(x[-1])
        limits = self._fit(history, header, minute)
        self._write(history, spec, header, x)
        if limits != self.limits:
            self.limits, self.dials = limits, []
            self.canvas.draw()
            self.still = self.canvas.copy_from_bbox(self.figure.bbox)
        dials = [text.get_text() for text in self.dial_texts]
        if dials != self.dials:
            self.dials = dials
            self.canvas.restore_region(self.still)
            for text in self.dial_texts:
                self.figure.draw_artist(text)
            self.with_dials = self.canvas.copy_from_bbox(self.figure.bbox)
        self.canvas.restore_region(self.with_dials)
        for artist in self.moving:
            self.figure.draw_artist(artist)
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()

    def _fit(self, history: History, header: Header, minute: float) -> tuple[Any, ...]:
        """Sets the axes' ends, which move in coarse steps; returns them."""
        begin, end = 0.0, float(max(header.length_min, 1))
        if end > WINDOW_MIN:
            step = WINDOW_MIN / 4
            end = max(WINDOW_MIN, math.ceil((minute + 1) / step) * step)
            begin = end - WINDOW_MIN
        found: list[Any] = [begin, end]
        for panel in self.panels:
            columns = [history.column(line.signal) * line.factor for line in panel.lines]
            most = max(float(c.max()) for c in columns)
            top = panel.least if most <= panel.least else _round_up(1.15 * most)
            low = min(float(c.min()) for c in columns)
            bottom = panel.floor or (-_round_up(-1.1 * low) if low < 0 else 0.0)
            found += [bottom, top]
        if tuple(found) != self.limits:
            length = end - begin
            step = 10 if length <= 60 else 30 if length <= 150 else 60
            ticks = np.arange(begin, end + 1, step)
            for axes, bottom, top in zip(self.axes, found[2::2], found[3::2], strict=True):
                axes.set_xlim(begin, end)
                axes.set_xticks(ticks)
                axes.set_ylim(bottom, top)
        return tuple(found)

    def _write(
        self, history: History, spec: Spec, header: Header, x: npt.NDArray[np.float64]
    ) -> None:
        """Puts the history into the moving parts."""
        for panel, lines, value in zip(self.panels, self.lines, self.values, strict=True):
            for line, artist in zip(panel.lines, lines, strict=True):
                y = history.column(line.signal) * line.factor
                artist.set_data(x, np.maximum(y, panel.floor) if panel.floor else y)
            value.set_text(f"{number(panel.value(history))} {panel.unit}".rstrip())
        if self.ring is not None:
            rang, level = self.ring
            pages = history.column("page") > 0.5 if history.has("page") else np.zeros(len(x), bool)
            rang.set_data(x[pages], np.full(int(pages.sum()), 0.115))
            level.set_visible(header.page_burn is not None)
            if header.page_burn is not None:
                level.set_ydata([header.page_burn] * 2)
        for text, dial in zip(self.dial_texts, spec.dials, strict=True):
            text.set_text(dial_text(dial, history))
            # Of many dials those that were turned stand out.
            is_turned = history.last(f"dial_{dial.name}", dial.default) != dial.default
            text.set_color(BLUE if is_turned and len(spec.dials) > FEW_DIALS else INK)
        most = max(float(history.dollars.max(initial=0.0)), 1e-9)
        for bar, text, dollars in zip(self.bars, self.bar_texts, history.dollars, strict=True):
            bar.set_width(0.26 * max(0.0, float(dollars)) / most)
            text.set_text(f"{dollars:.2f}")
        self.total.set_text(f"{history.dollars.sum():.2f} USD")
        self.heading.set_text(title(history, header))
        word = _alarm(history)
        self.badge.set_text(f" {word or 'quiet'} ")
        self.badge.set_bbox({"facecolor": RED if word else GREEN, "edgecolor": "none", "pad": 4.0})
        self.notes.set_text("   ".join(_notes(history)))


def _alarm(history: History) -> str:
    """What the badge warns of; nothing, if all is quiet."""
    if history.has("page"):
        return "PAGE" if history.last("page") > 0.5 else ""
    if unseen_regions(history):
        return "NO CONTROL PLANE"
    burns = min(history.last("burn_5min"), history.last("burn_1h"))
    return "BURNING" if burns >= BURNING else ""


def _notes(history: History) -> list[str]:
    """What is going on, in a few words."""
    notes = []
    unseen = unseen_regions(history)
    for region in range(3):
        if region in unseen:
            notes.append(f"region {region}: no word from the control plane")
        elif history.last(f"quorum_r{region}", 1.0) < 0.5:
            notes.append(f"region {region}: no quorum")
    if history.last("rollout_running") > 0.5:
        left = 100 * history.last("rollout_left_share")
        notes.append(f"rollout: {number(left)} % of the fleet left")
    elif 0 < history.last("rollout_next_min", 60.0) < 60:
        notes.append(f"rollout in {history.last('rollout_next_min'):.0f} min")
    if history.last("bad_build_share") > 0:
        notes.append(f"new build on {100 * history.last('bad_build_share'):.0f} % of the traffic")
    if history.last("rollback_left_min") > 0:
        notes.append(f"rollback: {history.last('rollback_left_min'):.0f} min left")
    if history.last("warm_up_left_min") > 0:
        notes.append(f"warm-up: {history.last('warm_up_left_min'):.0f} min left")
    if history.last("shed_traffic") > 0:
        notes.append(f"{100 * history.last('shed_traffic'):.0f} % of the traffic refused")
    if history.last("dial_feature", 1.0) < 0.5:
        notes.append("recommendations off")
    return notes


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 4, 5, 8 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    for step in (1.0, 1.5, 2.0, 2.5, 4.0, 5.0, 8.0, 10.0):
        if value <= step * power * (1 + 1e-9):
            return step * power
    return 10.0 * power
