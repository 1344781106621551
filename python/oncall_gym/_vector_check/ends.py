"""Rules about ends of episodes and partial resets."""

from __future__ import annotations

from functools import partial

import numpy as np
from gymnasium.vector import AutoresetMode

from .rule import Rules, check_infos, refuses, row_of
from .trace import (
    Context,
    Flags,
    NotChecked,
    Tree,
    in_space,
    need,
    same,
    take,
)

RULES = Rules()


@RULES.add("autoreset-next-step")
def _next_step(c: Context) -> None:
    _need_mode(c, AutoresetMode.NEXT_STEP)
    end, before = c.first_end(c.env, c.seed)
    ended = end.ended
    action, other = c.actions(2, offset=2)
    after = take(c.env, action)
    need(
        (after.rewards[ended] == 0).all(),
        f"step after an end: expected reward 0 in its rows, got {after.rewards[ended]}",
    )
    need(not after.ended[ended].any(), "step after an end: expected both flags False in its rows")
    _need_new_rows(c, end.observation, after.observation, ended, "step after an end")
    # The reset step ignores its action: the same run with another one gives the same rows.
    rows = [row_of(c, other if over else action, row) for row, over in enumerate(ended)]
    again = c.open()
    again.reset(seed=c.seed)
    for taken in before:
        again.step(taken)
    changed = take(again, c.batch(rows))
    need(
        same(after.observation, changed.observation),
        "step after an end: the action of its rows must be ignored, it changes the observations",
    )


@RULES.add("autoreset-same-step")
def _same_step(c: Context) -> None:
    _need_mode(c, AutoresetMode.SAME_STEP)
    end, before = c.first_end(c.env, c.seed)
    for key in ("final_obs", "_final_obs"):
        need(key in end.infos, f"infos of an end: expected {key!r}, got {sorted(end.infos)}")
    mask = end.infos["_final_obs"]
    need(same(mask, end.ended), f"_final_obs: expected the rows that ended {end.ended}, got {mask}")
    rows = c.rows(end.observation)
    for row in np.flatnonzero(end.ended):
        final = _final_row(end.infos["final_obs"], int(row))
        in_space(c.env.single_observation_space, final, f"final_obs of row {row}")
        need(
            not same(final, rows[row]),
            f"row {row} ended: the observation is the final one, expected that of the reset",
        )
    if not (c.fresh and c.remodes):
        return
    # The same run without autoreset returns the true final observation.
    plain = c.open(autoreset_mode=AutoresetMode.DISABLED)
    plain.reset(seed=c.seed)
    for action in before[:-1]:
        plain.step(action)
    truth = take(plain, before[-1])
    for row in np.flatnonzero(end.ended):
        final = _final_row(end.infos["final_obs"], int(row))
        need(
            same(np.asarray(final), np.asarray(c.rows(truth.observation)[row])),
            f"final_obs of row {row}: differs from the last observation without autoreset",
        )


@RULES.add("final-info", strict=True)
def _final_info(c: Context) -> None:
    _need_mode(c, AutoresetMode.SAME_STEP)
    end, _ = c.first_end(c.env, c.seed)
    need(
        isinstance(end.infos.get("final_info"), dict)
        and same(end.infos.get("_final_info"), end.ended),
        "infos of an end: expected final_info as a dict with the mask _final_info",
    )


@RULES.add("autoreset-disabled")
def _disabled(c: Context) -> None:
    _need_mode(c, AutoresetMode.DISABLED)
    end, _ = c.first_end(c.env, c.seed)
    need(
        refuses(lambda: c.env.step(c.actions(1, offset=2)[0])),
        "step with an ended row that was not reset: expected an error, got none",
    )
    end, _ = c.first_end(c.env, c.seed)
    mask = end.ended
    observation, _ = c.env.reset(options={"reset_mask": mask.copy()})
    _need_new_rows(c, end.observation, observation, mask, "reset of the ended rows")
    after = take(c.env, c.actions(1, offset=2)[0])
    in_space(c.env.observation_space, after.observation, "observations after a partial reset")


@RULES.add("reset-mask")
def _reset_mask(c: Context) -> None:
    if c.n < 2:
        raise NotChecked("needs at least two rows")
    actions = c.actions(4)
    whole = c.run(c.env, c.seed, actions)
    if any(step.ended.any() for step in whole.steps):
        raise NotChecked("an episode ended within 4 steps")
    mask = np.zeros(c.n, dtype=np.bool_)
    mask[0] = True
    c.run(c.env, c.seed, actions[:2])
    observation, infos = c.env.reset(options={"reset_mask": mask.copy()})
    in_space(c.env.observation_space, observation, "observations of a partial reset")
    check_infos(infos, c.n, "infos of a partial reset")
    rows, before = c.rows(observation), c.rows(whole.steps[1].observation)
    for row in range(1, c.n):
        need(
            same(rows[row], before[row]),
            f"reset_mask={mask.tolist()}: row {row} was not named, but its observation changed",
        )
    need(
        not same(rows[0], before[0]),
        f"reset_mask={mask.tolist()}: row 0 shows the observation from before its reset",
    )
    for index in (2, 3):
        step = take(c.env, actions[index])
        rows, wanted = c.rows(step.observation), c.rows(whole.steps[index].observation)
        for row in range(1, c.n):
            need(
                same(rows[row], wanted[row])
                and same(step.rewards[row], whole.steps[index].rewards[row]),
                f"after reset_mask={mask.tolist()}, row {row} does not go on as it would have",
            )


@RULES.add("reset-mask-refused")
def _reset_mask_refused(c: Context) -> None:
    bad = {
        "of integers": np.ones(c.n, dtype=np.int64),
        "of a wrong shape": np.ones(c.n + 1, dtype=np.bool_),
        "without any True": np.zeros(c.n, dtype=np.bool_),
        "that is a list": [True] * c.n,
    }
    for name, mask in bad.items():
        c.env.reset(seed=c.seed)
        need(
            refuses(partial(c.env.reset, options={"reset_mask": mask})),
            f"reset: a reset_mask {name} must be refused, was taken",
        )


@RULES.add("options-unchanged", strict=True)
def _options_unchanged(c: Context) -> None:
    c.env.reset(seed=c.seed)
    mask = np.zeros(c.n, dtype=np.bool_)
    mask[0] = True
    options = {"reset_mask": mask}
    c.env.reset(options=options)
    need(
        options.get("reset_mask") is mask and mask.sum() == 1 and mask[0] and len(options) == 1,
        f"reset: changed the options that it was given to {options}; wrappers outside read them",
    )


def _final_row(final: Tree, row: int) -> Tree:
    """A row of `final_obs`, an array of rows or of objects, or a dict or tuple of them."""
    if isinstance(final, dict):
        return {key: _final_row(value, row) for key, value in final.items()}
    if isinstance(final, tuple):
        return tuple(_final_row(value, row) for value in final)
    return final[row]


def _need_new_rows(c: Context, before: Tree, after: Tree, mask: Flags, what: str) -> None:
    old, new = c.rows(before), c.rows(after)
    for row in range(c.n):
        if mask[row]:
            need(
                not same(old[row], new[row]),
                f"{what}: row {row} still shows the final observation, expected a new episode's",
            )


def _need_mode(c: Context, mode: AutoresetMode) -> None:
    if c.mode is not mode:
        raise NotChecked(f"the autoreset mode is {c.mode}")
