"""The dashboard as 80 columns of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._history import Header, History

if TYPE_CHECKING:
    import numpy.typing as npt

    from .spaces import Dial, Spec

__all__ = ["ansi", "clock", "dial_text", "minute_signal", "number", "unseen_regions"]

WIDTH = 80
SPARK_MIN = 40
"""Minutes that a sparkline shows."""

BARS = "▁▂▃▄▅▆▇█"
LEAST = 0.005
"""What is written as 0.00 draws no bars either."""

ROWS: tuple[tuple[str, str, float, str], ...] = (
    ("offered_rps", "Demand", 1.0, "req/s"),
    ("admitted_rps", "Admitted", 1.0, "req/s"),
    ("serving", "Serving", 1.0, "instances"),
    ("booting", "Booting", 1.0, "instances"),
    ("utilization", "Utilisation", 100.0, "%"),
    ("p99_ms", "Latency p99", 1.0, "ms"),
    ("error_rate", "Errors", 100.0, "%"),
    ("burn_1h", "Burn, 1 h", 1.0, "x"),
    ("budget_left", "Budget left", 100.0, "%"),
    ("cache_hit", "Cache hits", 100.0, "%"),
    ("db_utilization", "Database", 100.0, "%"),
    ("bad_build_share", "On new build", 100.0, "%"),
)
"""Signal, label, factor and unit of each line."""

DISCOVERY_ROWS: tuple[tuple[str, str, float, str], ...] = (
    ("requests_per_s", "Requests", 1.0, "1/s"),
    ("failed_share_r0", "Failed, r0", 100.0, "%"),
    ("failed_share_r1", "Failed, r1", 100.0, "%"),
    ("failed_share_r2", "Failed, r2", 100.0, "%"),
    ("burn_5min", "Burn, 5 min", 1.0, "x"),
    ("budget_left", "Budget left", 100.0, "%"),
    ("ready_share_r0", "READY, r0", 100.0, "%"),
    ("ready_share_r1", "READY, r1", 100.0, "%"),
    ("ready_share_r2", "READY, r2", 100.0, "%"),
    ("probe_failure_share_r0", "Probes, r0", 100.0, "% failed"),
    ("probe_failures_by_service", "By service", 100.0, "%"),
    ("withdrawal_s_p99", "Withdrawal", 1.0, "s, p99"),
    ("removal_s_p99", "Removal p99", 1.0, "s"),
    ("relay_queue_ms_p99_r0", "Relay queue", 1.0, "ms, r0"),
    ("connected_share_r0", "Connected", 100.0, "%, r0"),
    ("snapshot_age_s_p99", "View age p99", 1.0, "s"),
    ("write_latency_ms_p99_r0", "Write p99", 1.0, "ms, r0"),
    ("follower_lag_s_max_r0", "Lag, r0", 1.0, "s"),
    ("rollout_left_share", "Rollout left", 100.0, "%"),
)
"""The same of discovery."""


def ansi(history: History, spec: Spec, header: Header) -> str:
    """A board of 80 columns: header, readouts with sparklines, dials, dollars.

    Plain text without colours or cursor moves, so that it reads the same in a file or a pipe.

    Args:
        history: what to show; at least one row.
        spec: names of dials and terms.
        header: scenario and seed.
    """
    if not len(history):
        raise ValueError("history: expected at least one row, got none")
    lines = [_ends(title(history, header), _state(history)), "-" * WIDTH]
    for name, label, factor, unit in ROWS if spec.world == "fleet" else DISCOVERY_ROWS:
        if not history.has(name):
            continue
        values = history.column(name) * factor
        lines.append(
            f"{label:<13}{number(float(values[-1])):>9} {unit:<10}  {spark(values[-SPARK_MIN:])}"
        )
    lines.append("-" * WIDTH)
    lines += _wrap("Dials  ", _dials(history, spec))
    lines.append("-" * WIDTH)
    dollars = [
        f"{term.name.removesuffix('_usd')} {value:.2f}"
        for term, value in zip(spec.terms, history.dollars, strict=True)
    ]
    lines += _wrap("Dollars", [f"all {history.dollars.sum():.2f}", *dollars])
    return "\n".join(lines) + "\n"


def _state(history: History) -> str:
    """What is worst: the pager, or regions whose control plane nobody sees."""
    if history.last("page") > 0.5:
        return "** PAGE **"
    lost = unseen_regions(history)
    return f"** NO CONTROL PLANE {lost} **" if lost else "quiet"


def unseen_regions(history: History) -> list[int]:
    """Regions whose control plane nobody sees."""
    return [r for r in range(3) if history.last(f"catalog_seen_r{r}", 1.0) < 0.5]


def minute_signal(history: History) -> str:
    """The signal that tells the minute of the episode, in whichever world."""
    return "shift_min" if history.has("shift_min") else "episode_min"


def _dials(history: History, spec: Spec) -> list[str]:
    """All dials of a few; of many, those that do not stand at their defaults."""
    dials = spec.dials
    if len(dials) > 12:
        names = {d.name: history.last(f"dial_{d.name}", d.default) for d in dials}
        dials = tuple(d for d in dials if names[d.name] != d.default)
        rest = [f"the other {len(spec.dials) - len(dials)} at their defaults"]
    else:
        rest = []
    return [f"{d.name} {dial_text(d, history)}" for d in dials] + rest


def title(history: History, header: Header) -> str:
    """Scenario, seed, minute and clock."""
    minute = int(history.last(minute_signal(history), max(0, len(history) - 1)))
    parts = [
        f"{header.scenario}",
        f"seed {header.seed}",
        f"episode {header.episode}",
        f"minute {minute}/{header.length_min}",
    ]
    if history.has("time_of_day_h"):
        parts.append(clock(history.last("time_of_day_h")))
    return " · ".join(parts)


def clock(hours: float) -> str:
    """Hours as HH:MM."""
    minutes = round(hours * 60) % 1440
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def number(value: float) -> str:
    """A number in at most 8 characters, with as many digits as help."""
    size = abs(value)
    if size >= 1e6:
        return f"{value:.3g}"
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100 or value == round(value):
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def spark(values: npt.NDArray[np.float64]) -> str:
    """A line of bars from zero (or the least value, if that is negative) to the greatest."""
    low, high = min(0.0, float(values.min())), float(values.max())
    if high - low < LEAST:
        return BARS[0] * len(values)
    steps = ((values - low) / (high - low) * (len(BARS) - 1)).round().astype(int)
    return "".join(BARS[step] for step in steps)


def dial_text(dial: Dial, history: History) -> str:
    """A dial as it stands: on or off, a share, a number with its unit, minutes of a press left."""
    if dial.kind == "press":
        left = history.last(f"{dial.name}_left_min")
        return f"runs, {left:.0f} min" if left > 0 else "-"
    value = history.last(f"dial_{dial.name}", dial.default)
    if dial.kind == "switch":
        return "on" if value > 0.5 else "off"
    if dial.kind == "real" and not dial.unit:
        return f"{100 * value:.0f} %"
    return f"{number(value)} {dial.unit}".rstrip()


def _ends(left: str, right: str) -> str:
    gap = max(1, WIDTH - len(left) - len(right))
    return left[: WIDTH - len(right) - 1] + " " * gap + right


def _wrap(first: str, parts: list[str]) -> list[str]:
    """Parts joined by two spaces over as many lines as they need, under one another."""
    lines, line = [], first
    for part in parts:
        if len(line) + 2 + len(part) > WIDTH:
            lines.append(line)
            line = " " * len(first)
        line += "  " + part
    return [*lines, line]
