"""Rules about copies, pictures and closing."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from .rule import Rules, refuses
from .trace import (
    Context,
    NotChecked,
    describe,
    need,
    same,
)

RULES = Rules()


@RULES.add("copies")
def _copies(c: Context) -> None:
    actions = c.actions(6)
    c.run(c.env, c.seed, actions[:3])
    twins: dict[str, VectorEnv[Any, Any, Any]] = {}
    try:
        twins["deepcopy"] = copy.deepcopy(c.env)
        twins["pickle"] = pickle.loads(pickle.dumps(c.env))
    except Exception as error:
        raise NotChecked(f"cannot be copied: {type(error).__name__}") from error
    steps = c.advance(c.env, actions[3:])
    for name, twin in twins.items():
        others = c.advance(twin, actions[3:])
        for index, (step, other) in enumerate(zip(steps, others, strict=True)):
            need(
                same(step.observation, other.observation) and same(step.rewards, other.rewards),
                f"{name} in mid-episode: step {index + 1} of the copy differs from the original's",
            )
        twin.close()


@RULES.add("render")
def _render(c: Context) -> None:
    if c.env.render_mode not in ("rgb_array", "ansi"):
        raise NotChecked(f"render_mode is {c.env.render_mode!r}")
    c.env.reset(seed=c.seed)
    frames = c.env.render()
    need(
        isinstance(frames, (tuple, list)) and len(frames) == c.n,
        f"render: expected a tuple of {c.n} frames, got {describe(frames)}",
    )
    for row, frame in enumerate(frames or ()):
        good = (
            isinstance(frame, str)
            if c.env.render_mode == "ansi"
            else isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.ndim == 3
        )
        need(good, f"render: frame of row {row} is {describe(frame)}")


@RULES.add("close")
def _close(c: Context) -> None:
    env = c.need_fresh()
    env.reset(seed=c.seed)
    env.close()
    need(env.unwrapped.closed is True, f"closed: expected True after close, got {env.closed!r}")
    env.close()


@RULES.add("step-after-close", strict=True)
def _step_after_close(c: Context) -> None:
    env = c.need_fresh()
    env.reset(seed=c.seed)
    env.close()
    need(
        refuses(lambda: env.step(c.actions(1)[0])),
        "step: expected an error after close, got none",
    )
