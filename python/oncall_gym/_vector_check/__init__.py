"""The rules of `oncall_gym.check_vector_env`."""

from __future__ import annotations

from . import ends, lifecycle, returns, seeds
from .rule import Rule
from .trace import Context, NotChecked, Violation

RULES: tuple[Rule, ...] = (*returns.RULES, *seeds.RULES, *ends.RULES, *lifecycle.RULES)
"""All rules, in the order in which they are tried."""

__all__ = ["RULES", "Context", "NotChecked", "Rule", "Violation"]
