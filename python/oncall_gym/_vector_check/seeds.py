"""Rules about seeds, determinism and the independence of rows."""

from __future__ import annotations

from .rule import Rules, need_chance, refuses, row_of, short_of
from .trace import (
    Context,
    NotChecked,
    difference,
    need,
    reset,
    row_difference,
)

RULES = Rules()


@RULES.add("seed-int")
def _seed_int(c: Context) -> None:
    first = c.short(c.env, c.seed)
    where = difference(first, c.short(c.env, c.seed))
    need(where is None, f"reset(seed={c.seed}) twice: {where}; expected the same")
    c.short(c.env, c.seed + 1)
    where = difference(first, c.short(c.env, c.seed))
    need(where is None, f"reset with seed A, then B, then A again: {where}; expected the same")


@RULES.add("seed-differs")
def _seed_differs(c: Context) -> None:
    need_chance(c)
    where = difference(c.short(c.env, c.seed), c.short(c.env, c.seed + 1_000_003))
    need(where is not None, f"seeds {c.seed} and {c.seed + 1_000_003} give the same trajectory")


@RULES.add("seed-rows")
def _seed_rows(c: Context) -> None:
    need_chance(c)
    if c.n < 2:
        raise NotChecked("needs at least two rows")
    actions = [c.batch([row_of(c, action, 0)] * c.n) for action in c.actions(short_of(c))]
    trace = c.run(c.env, c.seed, actions)
    for row in range(1, c.n):
        where = row_difference(c, trace, 0, trace, row)
        need(where is not None, f"reset(seed={c.seed}): rows 0 and {row} draw the same")


@RULES.add("seed-list")
def _seed_list(c: Context) -> None:
    seeds = c.seeds()
    actions = c.actions(short_of(c))
    straight = c.run(c.env, list(seeds), actions)
    where = difference(straight, c.run(c.env, list(seeds), actions))
    need(where is None, f"reset(seed={seeds}) twice: {where}; expected the same")
    if c.n < 2:
        raise NotChecked("needs at least two rows")
    turned = c.run(c.env, seeds[-1:] + seeds[:-1], [c.turn(action, 1) for action in actions])
    for row in range(c.n):
        where = row_difference(c, straight, row, turned, (row + 1) % c.n)
        need(
            where is None,
            f"seed and actions of row {row} given to row {(row + 1) % c.n}: {where}; "
            "a list's seed must decide its row alone",
        )
    need_chance(c)
    other = c.run(c.env, c.seeds(1), actions)
    need(difference(straight, other) is not None, "two different lists of seeds give the same")


@RULES.add("seed-list-gaps")
def _seed_list_gaps(c: Context) -> None:
    if c.n < 2:
        raise NotChecked("needs at least two rows")
    seeds = c.seeds()
    gaps: list[int | None] = [seeds[0], *[None] * (c.n - 1)]
    where = row_difference(c, c.short(c.env, list(seeds)), 0, c.short(c.env, gaps), 0)
    need(where is None, f"row 0 with reset(seed={gaps}) and with {seeds}: {where}")


@RULES.add("seed-list-length")
def _seed_list_length(c: Context) -> None:
    seeds: list[int | None] = [*c.seeds(), 1]
    need(
        refuses(lambda: reset(c.env, seeds)),
        f"reset: a list of {c.n + 1} seeds for {c.n} rows must be refused, was taken",
    )


@RULES.add("seed-continues")
def _seed_continues(c: Context) -> None:
    actions = c.actions(short_of(c))
    first = c.run(c.env, c.seed, actions)
    second = c.run(c.env, None, actions)
    c.run(c.env, c.seed, actions)
    where = difference(second, c.run(c.env, None, actions))
    need(where is None, f"reset() after reset(seed) and the same steps, twice: {where}")
    need_chance(c)
    need(
        difference(first, second) is not None,
        "reset() after reset(seed) repeats the seeded episode; it must go on with the generator",
    )


@RULES.add("unseeded-differ")
def _unseeded_differ(c: Context) -> None:
    need_chance(c)
    a, b = c.need_fresh(), c.open()
    need(
        difference(c.short(a, None), c.short(b, None)) is not None,
        "two new environments, both reset without a seed, give the same trajectory",
    )


@RULES.add("determinism")
def _determinism(c: Context) -> None:
    actions = c.actions(c.steps)
    other = c.open()
    where = difference(c.run(c.env, c.seed, actions), c.run(other, c.seed, actions), infos=True)
    need(where is None, f"the same seed and actions twice: {where}; expected the same bits")


@RULES.add("neighbours")
def _neighbours(c: Context) -> None:
    if c.n < 2:
        raise NotChecked("needs at least two rows")
    seeds, others = c.seeds(), c.seeds(1)
    ours, theirs = c.actions(c.steps), c.actions(c.steps, offset=1)
    mixed = [
        c.batch([row_of(c, a, 0)] + [row_of(c, b, row) for row in range(1, c.n)])
        for a, b in zip(ours, theirs, strict=True)
    ]
    alone = c.run(c.env, list(seeds), ours)
    beside = c.run(c.env, [seeds[0], *others[1:]], mixed)
    where = row_difference(c, alone, 0, beside, 0)
    need(where is None, f"row 0 beside other seeds and actions of the other rows: {where}")


@RULES.add("batch-size")
def _batch_size(c: Context) -> None:
    if not (c.fresh and c.resizes):
        raise NotChecked("needs a callable that takes num_envs")
    one = Context(lambda: c.open(num_envs=1), c.seed, c.steps, c.stochastic, fresh=False)
    need(one.n == 1, f"num_envs=1 gave {one.n} rows")
    seeds, actions = c.seeds(), c.actions(c.steps)
    together = c.run(c.env, list(seeds), actions)
    row = c.n - 1
    alone = one.run(one.env, [seeds[row]], [c.batch([row_of(c, a, row)]) for a in actions])
    where = row_difference(c, together, row, alone, 0, of_b=one)
    need(where is None, f"row {row} of {c.n} and the same seed and actions alone: {where}")
