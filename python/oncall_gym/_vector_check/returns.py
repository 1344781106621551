"""Rules about attributes, and about what `reset` and `step` return."""

from __future__ import annotations

import copy
import itertools

import numpy as np
from gymnasium import Space
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from .rule import Rules, check_infos, refuses
from .trace import (
    Context,
    NotChecked,
    Tree,
    describe,
    in_space,
    leaves,
    need,
    same,
)

RULES = Rules()


@RULES.add("num-envs", fatal=True)
def _num_envs(c: Context) -> None:
    n = getattr(c.env, "num_envs", None)
    need(
        isinstance(n, int) and not isinstance(n, bool) and n >= 1,
        f"num_envs: expected an int of at least 1, got {n!r}",
    )


@RULES.add("spaces", fatal=True)
def _spaces(c: Context) -> None:
    for kind in ("observation", "action"):
        for name in (f"single_{kind}_space", f"{kind}_space"):
            space = getattr(c.env, name, None)
            need(isinstance(space, Space), f"{name}: expected a gymnasium Space, got {space!r}")


@RULES.add("batched-spaces", fatal=True)
def _batched_spaces(c: Context) -> None:
    for kind in ("observation", "action"):
        batched = getattr(c.env, f"{kind}_space")
        wanted = batch_space(getattr(c.env, f"single_{kind}_space"), c.n)
        need(
            batched == wanted,
            f"{kind}_space: expected batch_space(single_{kind}_space, {c.n}) = {wanted}, "
            f"got {batched}",
        )


@RULES.add("autoreset-metadata")
def _autoreset_metadata(c: Context) -> None:
    mode = c.env.metadata.get("autoreset_mode")
    need(
        isinstance(mode, AutoresetMode),
        f'metadata["autoreset_mode"]: expected a member of AutoresetMode, got {mode!r}',
    )


@RULES.add("autoreset-attribute")
def _autoreset_attribute(c: Context) -> None:
    mode = getattr(c.env.unwrapped, "autoreset_mode", None)
    need(
        isinstance(mode, AutoresetMode) and mode is c.mode,
        f'autoreset_mode: expected an attribute equal to metadata["autoreset_mode"] = {c.mode}, '
        f"got {mode!r}",
    )


@RULES.add("other-attributes")
def _other_attributes(c: Context) -> None:
    need(c.env.closed is False, f"closed: expected False before close, got {c.env.closed!r}")
    spec = c.env.spec
    need(spec is None or isinstance(spec, EnvSpec), f"spec: expected an EnvSpec, got {spec!r}")
    modes = c.env.metadata.get("render_modes", [])
    need(
        c.env.render_mode is None or c.env.render_mode in modes,
        f'render_mode: {c.env.render_mode!r} is not in metadata["render_modes"] = {modes}',
    )


@RULES.add("step-before-reset", strict=True)
def _step_before_reset(c: Context) -> None:
    env = c.need_fresh()
    need(
        refuses(lambda: env.step(c.actions(1)[0])),
        "step: expected an error before the first reset, got none",
    )


@RULES.add("reset-returns", fatal=True)
def _reset_returns(c: Context) -> None:
    result = c.env.reset(seed=c.seed)
    need(
        isinstance(result, tuple) and len(result) == 2,
        f"reset: expected a tuple (observations, infos), got {describe(result)}",
    )
    need(isinstance(result[1], dict), f"reset: expected infos as a dict, got {describe(result[1])}")
    in_space(c.env.observation_space, result[0], "observations of reset")
    check_infos(result[1], c.n, "infos of reset")


@RULES.add("step-returns", fatal=True)
def _step_returns(c: Context) -> None:
    c.env.reset(seed=c.seed)
    result = c.env.step(c.actions(1)[0])
    need(
        isinstance(result, tuple) and len(result) == 5,
        "step: expected a tuple (observations, rewards, terminations, truncations, infos), "
        f"got {describe(result)}",
    )
    _, rewards, terminated, truncated, infos = result
    need(
        isinstance(rewards, np.ndarray) and np.issubdtype(rewards.dtype, np.floating),
        f"rewards: expected an array of a float dtype, got {describe(rewards)}",
    )
    reward_space = getattr(c.env.unwrapped, "reward_space", None)
    single = () if reward_space is None else tuple(reward_space.shape)
    shapes = {(c.n, *single), single} if single else {(c.n,)}
    need(rewards.shape in shapes, f"rewards: expected shape {(c.n, *single)}, got {rewards.shape}")
    for name, flags in (("terminations", terminated), ("truncations", truncated)):
        need(
            isinstance(flags, np.ndarray) and flags.dtype == np.bool_ and flags.shape == (c.n,),
            f"{name}: expected an array of bool of shape {(c.n,)}, got {describe(flags)}",
        )
    need(isinstance(infos, dict), f"step: expected infos as a dict, got {describe(infos)}")


@RULES.add("long-run")
def _long_run(c: Context) -> None:
    trace = c.run(c.env, c.seed, c.actions(c.steps))
    for index, step in enumerate(trace.steps):
        at = f"of step {index + 1}"
        in_space(c.env.observation_space, step.observation, f"observations {at}")
        need(np.isfinite(step.rewards).all(), f"rewards {at}: not finite: {step.rewards}")
        check_infos(step.infos, c.n, f"infos {at}")


@RULES.add("actions-unchanged")
def _actions_unchanged(c: Context) -> None:
    c.env.reset(seed=c.seed)
    for action in c.actions(3):
        before = copy.deepcopy(action)
        c.env.step(action)
        need(same(before, action), "step: changed the actions that it was given")


@RULES.add("buffers")
def _buffers(c: Context) -> None:
    if getattr(c.env.unwrapped, "copy", True) is False:
        raise NotChecked("env.unwrapped.copy is False: the arrays may be reused")
    names = ("observations", "rewards", "terminations", "truncations")
    first, _ = c.env.reset(seed=c.seed)
    calls: list[list[tuple[str, Tree, Tree]]] = [
        [("observations of reset", first, copy.deepcopy(first))]
    ]
    ended = False
    for index, action in enumerate(c.actions(c.steps)):
        result = c.env.step(action)[:4]
        calls.append(
            [
                (f"{name} of step {index + 1}", value, copy.deepcopy(value))
                for name, value in zip(names, result, strict=True)
            ]
        )
        # One step beyond the first end: some environments clear their own flags there.
        if ended:
            break
        ended = bool(result[2].any() or result[3].any())
        if ended and c.mode is AutoresetMode.DISABLED:
            break
    second, _ = c.env.reset(seed=c.seed + 1)
    calls.append([("observations of the second reset", second, copy.deepcopy(second))])
    for call in calls:
        for name, value, then in call:
            need(same(value, then), f"{name}: changed in a later call; return new arrays or copies")
    for before, after in itertools.pairwise(calls):
        for (name, value, _), (other, later, _) in itertools.product(before, after):
            shared = any(np.shares_memory(x, y) for x in leaves(value) for y in leaves(later))
            need(not shared, f"{name} and {other} share memory; return new arrays or copies")
