"""Exceptions: all are :class:`OncallError`, and each also is the built-in that people expect.

After an exception nothing has changed: no row moved, no episode began.
"""

from __future__ import annotations

__all__ = [
    "ActionError",
    "DtypeError",
    "InternalError",
    "OncallError",
    "OptionError",
    "OrderError",
    "ScenarioError",
    "ShapeError",
    "StateError",
]


class OncallError(Exception):
    """Anything that this package refuses."""


class ShapeError(OncallError, ValueError):
    """An array has the wrong shape or layout, or shares memory with another one."""


class DtypeError(ShapeError, TypeError):
    """An array has the wrong dtype, or something is no array at all."""


class ActionError(OncallError, ValueError):
    """An action is out of its range; the message names row, dial, value and range."""


class OrderError(OncallError, RuntimeError):
    """A call came at the wrong time, such as a step before the first reset."""


class StateError(OncallError, ValueError):
    """Bytes are not a state that this environment can restore."""


class ScenarioError(OncallError, ValueError):
    """A scenario is wrong; the message lists every problem with its path."""


class OptionError(OncallError, ValueError):
    """A keyword or an argument is out of its range."""


class InternalError(OncallError, RuntimeError):
    """A fault of this package; please report it."""
