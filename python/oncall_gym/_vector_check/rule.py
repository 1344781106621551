"""What a rule is, and the parts that several of them use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector.utils import iterate

from .trace import SHORT, Context, NotChecked, Tree, describe, need


@dataclass(frozen=True)
class Rule:
    """A rule: its name, its check, and what its failure means for the rules after it.

    Attributes:
        name: short and unique.
        check: raises `Violation` where the rule is broken, `NotChecked` where it cannot be tried.
        strict: broken by Gymnasium's own vector environments, so tried on request only.
        fatal: the rules after it make no sense without it.
    """

    name: str
    check: Callable[[Context], None]
    strict: bool = False
    fatal: bool = False


class Rules(list[Rule]):
    """Rules in the order in which they are tried."""

    def add(
        self, name: str, *, strict: bool = False, fatal: bool = False
    ) -> Callable[[Callable[[Context], None]], Callable[[Context], None]]:
        """A decorator that adds a check."""

        def keep(check: Callable[[Context], None]) -> Callable[[Context], None]:
            self.append(Rule(name, check, strict, fatal))
            return check

        return keep


def check_infos(infos: dict[str, Any], n: int, what: str, depth: int = 0) -> None:
    """Every value has a row for each environment, every key a mask.

    Wrappers of Gymnasium leave the masks of nested keys out, so only the outer ones are demanded.
    """
    for key, value in infos.items():
        if key.startswith("_"):
            need(
                isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.shape == (n,),
                f"{what}: mask {key!r} must be an array of bool of shape {(n,)}, "
                f"got {describe(value)}",
            )
            continue
        need(depth > 0 or f"_{key}" in infos, f"{what}: key {key!r} has no mask {'_' + key!r}")
        if isinstance(value, dict):
            check_infos(value, n, f"{what}[{key!r}]", depth + 1)
        else:
            length = len(value) if hasattr(value, "__len__") else None
            need(length == n, f"{what}: {key!r} must have {n} rows, got {describe(value)}")


def need_chance(c: Context) -> None:
    """The rule is not checked for environments that draw nothing."""
    if not c.stochastic:
        raise NotChecked("stochastic=False")


def refuses(call: Callable[[], object]) -> bool:
    """Whether a call raises."""
    with contextlib.suppress(Exception):
        call()
        return False
    return True


def row_of(c: Context, action: Tree, row: int) -> Tree:
    return list(iterate(c.env.action_space, action))[row]


def short_of(c: Context) -> int:
    return min(SHORT, c.steps)
