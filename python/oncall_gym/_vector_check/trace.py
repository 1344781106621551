"""What the rules of `check_vector_env` stand on: environments, recorded traces, comparisons."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

Seed: TypeAlias = int | Sequence[int | None] | None
Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Tree: TypeAlias = Any
"""An observation or action as its space says: an array, or nested dicts and tuples of them."""

SHORT = 16
"""Steps of a trace that only has to show whether two environments draw the same."""


class Violation(Exception):
    """A rule is broken; the text says what was seen and what was expected."""


class NotChecked(Exception):
    """A rule could not be tried; the text says why."""


def need(condition: object, message: str) -> None:
    """Raises the message as a violation unless the condition holds."""
    if not condition:
        raise Violation(message)


@dataclass(frozen=True)
class Step:
    """Copies of what one `step` returned."""

    observation: Tree
    rewards: np.ndarray[Any, Any]
    terminated: Flags
    truncated: Flags
    infos: dict[str, Any]

    @property
    def ended(self) -> Flags:
        """Rows whose episode ended in this step."""
        return np.logical_or(self.terminated, self.truncated)


@dataclass(frozen=True)
class Trace:
    """Copies of what one `reset` and the steps after it returned."""

    observation: Tree
    infos: dict[str, Any]
    steps: list[Step]


class Context:
    """The environment under test, and fresh ones like it."""

    def __init__(
        self,
        factory: Callable[..., VectorEnv[Any, Any, Any]],
        seed: int,
        steps: int,
        stochastic: bool,
        *,
        fresh: bool,
        resizes: bool = False,
        remodes: bool = False,
    ) -> None:
        self.seed, self.steps, self.stochastic = seed, steps, stochastic
        self.fresh, self.resizes, self.remodes = fresh, resizes, remodes
        self._factory = factory
        self._opened: list[VectorEnv[Any, Any, Any]] = []
        self.env = self.open()

    def open(self, **keywords: object) -> VectorEnv[Any, Any, Any]:
        """A fresh environment, or the only one there is."""
        env = self._factory(**keywords)
        if not isinstance(env, VectorEnv):
            self.close()
            raise TypeError(
                f"env: expected a callable that makes a gymnasium.vector.VectorEnv, "
                f"it made a {type(env).__name__}"
            )
        if self.fresh:
            self._opened.append(env)
        return env

    def need_fresh(self) -> VectorEnv[Any, Any, Any]:
        """A fresh environment; the rule is not checked where only one is at hand."""
        if not self.fresh:
            raise NotChecked("needs a callable that makes new environments")
        return self.open()

    def close(self) -> None:
        """Closes what was opened."""
        while self._opened:
            env = self._opened.pop()
            if not env.closed:
                env.close()

    @property
    def n(self) -> int:
        """Rows of the environment."""
        return self.env.num_envs

    @property
    def mode(self) -> AutoresetMode | None:
        """The autoreset mode that the environment declares, None where it declares none."""
        mode = self.env.metadata.get("autoreset_mode")
        return mode if isinstance(mode, AutoresetMode) else None

    def seeds(self, offset: int = 0) -> list[int]:
        """One seed a row, all different."""
        return [self.seed + 1000 * offset + 7919 * row + 1 for row in range(self.n)]

    def actions(self, count: int, offset: int = 0) -> list[Tree]:
        """Batches of sampled actions, the same for the same arguments."""
        space = copy.deepcopy(self.env.action_space)
        space.seed(self.seed + 17 + offset)
        return [space.sample() for _ in range(count)]

    def run(self, env: VectorEnv[Any, Any, Any], seed: Seed, actions: Iterable[Tree]) -> Trace:
        """Resets and steps. A disabled environment is reset by mask after each end."""
        observation, infos = reset(env, seed)
        began = copy.deepcopy(observation), copy.deepcopy(infos)
        return Trace(*began, self.advance(env, actions))

    def advance(self, env: VectorEnv[Any, Any, Any], actions: Iterable[Tree]) -> list[Step]:
        """Steps on from where it stands. A disabled environment is reset by mask after each end."""
        disabled = env.metadata.get("autoreset_mode") is AutoresetMode.DISABLED
        steps = []
        for action in actions:
            step = take(env, action)
            steps.append(step)
            if disabled and step.ended.any():
                env.reset(options={"reset_mask": step.ended.copy()})
        return steps

    def short(self, env: VectorEnv[Any, Any, Any], seed: Seed) -> Trace:
        """A short trace with the common actions."""
        return self.run(env, seed, self.actions(min(SHORT, self.steps)))

    def first_end(self, env: VectorEnv[Any, Any, Any], seed: Seed) -> tuple[Step, list[Tree]]:
        """Steps a reset environment to the first end: that step, and the actions so far."""
        reset(env, seed)
        actions = self.actions(self.steps)
        for index, action in enumerate(actions):
            step = take(env, action)
            if step.ended.any():
                return step, actions[: index + 1]
        raise NotChecked(f"no episode ended within steps={self.steps}; give more or shorten them")

    def rows(self, observation: Tree) -> list[Tree]:
        """The rows of a batched observation."""
        return list(iterate(self.env.observation_space, observation))

    def turn(self, action: Tree, by: int) -> Tree:
        """A batch of actions with its rows moved down by `by`, round the end."""
        rows = list(iterate(self.env.action_space, action))
        return self.batch(rows[-by:] + rows[:-by] if by else rows)

    def batch(self, rows: list[Tree]) -> Tree:
        """A batch of actions from its rows."""
        single = self.env.single_action_space
        empty: Tree = create_empty_array(single, len(rows))
        return concatenate(single, rows, empty)


def reset(env: VectorEnv[Any, Any, Any], seed: Seed) -> tuple[Tree, dict[str, Any]]:
    """Resets all rows; a list gives each its seed, which the base class does not declare."""
    result: tuple[Tree, dict[str, Any]] = env.reset(seed=seed)  # type: ignore[arg-type]
    return result


def take(env: VectorEnv[Any, Any, Any], action: Tree) -> Step:
    """One step, with copies of all that it returns."""
    result = env.step(action)
    need(
        isinstance(result, tuple) and len(result) == 5,
        f"step: expected a tuple of 5, got {describe(result)}",
    )
    observation, rewards, terminated, truncated, infos = result
    return Step(
        copy.deepcopy(observation),
        np.array(rewards),
        np.array(terminated),
        np.array(truncated),
        copy.deepcopy(infos),
    )


def describe(value: Tree) -> str:
    """A few words about a value for a message."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of {len(value)}"
    return f"{type(value).__name__} {value!r}"[:120]


def leaves(value: Tree) -> list[np.ndarray[Any, Any]]:
    """All arrays in nested dicts, tuples and lists."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return []


def same(a: Tree, b: Tree) -> bool:
    """Whether two values are the same to the last bit, of the same types and shapes."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
            return False
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
        return a.tobytes() == b.tobytes()
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float) and a != a and b != b:
        return True
    return type(a) is type(b) and bool(np.all(a == b))


def difference(a: Trace, b: Trace, *, infos: bool = False) -> str | None:
    """Where two traces part, in words; None if they are the same to the last bit."""
    if not same(a.observation, b.observation):
        return "the observations of reset differ"
    if infos and not same(_untimed(a.infos), _untimed(b.infos)):
        return "the infos of reset differ"
    for index, (x, y) in enumerate(zip(a.steps, b.steps, strict=True)):
        for name in ("observation", "rewards", "terminated", "truncated"):
            if not same(getattr(x, name), getattr(y, name)):
                return f"{name} of step {index + 1} differ"
        if infos and not same(_untimed(x.infos), _untimed(y.infos)):
            return f"infos of step {index + 1} differ"
    return None


def row_difference(
    context: Context, a: Trace, row_a: int, b: Trace, row_b: int, *, of_b: Context | None = None
) -> str | None:
    """Where a row of one trace parts from a row of another; None if it does not."""
    rows_b = (of_b or context).rows
    if not same(context.rows(a.observation)[row_a], rows_b(b.observation)[row_b]):
        return "the observations of reset differ"
    for index, (x, y) in enumerate(zip(a.steps, b.steps, strict=True)):
        if not same(context.rows(x.observation)[row_a], rows_b(y.observation)[row_b]):
            return f"observation of step {index + 1} differ"
        for name in ("rewards", "terminated", "truncated"):
            if not same(getattr(x, name)[row_a], getattr(y, name)[row_b]):
                return f"{name} of step {index + 1} differ"
    return None


def in_space(space: Space[Any], value: Tree, what: str) -> None:
    """Demands that a value lies in a space, and says which part of it does not fit."""
    if space.contains(value):
        return
    if isinstance(space, Box) and isinstance(value, np.ndarray) and value.shape == space.shape:
        if value.dtype != space.dtype:
            raise Violation(f"{what}: expected dtype {space.dtype}, got {value.dtype}")
        low, high = space.low, space.high
        outside = np.argwhere(~((value >= low) & (value <= high)))
        if outside.size:
            at = tuple(int(i) for i in outside[0])
            raise Violation(
                f"{what}: value {value[at]} at {at} is outside {low[at]}..{high[at]} of the space"
            )
    raise Violation(f"{what}: {describe(value)} is not in {space}")


def _untimed(infos: dict[str, Any]) -> dict[str, Any]:
    """Infos without the wall-clock time that `RecordEpisodeStatistics` adds."""
    episode = infos.get("episode")
    if not isinstance(episode, dict):
        return infos
    kept = {key: value for key, value in episode.items() if key not in ("t", "_t")}
    return {**infos, "episode": kept}
