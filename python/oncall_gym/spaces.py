"""What goes in and what comes out: names, units, ranges, and Gymnasium's spaces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from oncall_gym import _native

__all__ = ["ActionMode", "Dial", "Signal", "Spec", "Term", "View"]

ActionMode: TypeAlias = Literal["multi_discrete", "box", "dict"]
View: TypeAlias = Literal["operator", "full"]


@dataclass(frozen=True)
class Dial:
    """One dial of the operator."""

    #: Binding name; unit last.
    name: str
    #: For people.
    label: str
    #: Natural unit; empty for a share, a switch or a press.
    unit: str
    #: count, real, log, switch or press.
    kind: str
    #: Lowest natural value.
    low: float
    #: Highest natural value.
    high: float
    #: Where it stands when a scenario says nothing else.
    default: float
    #: Natural values of the multi-discrete space after index 0, which keeps (or does not press).
    stops: tuple[float, ...]
    #: Logit of index 0 against 0 for the others, so that an untrained policy mostly keeps.
    initial_logit: float
    #: One sentence.
    doc: str


@dataclass(frozen=True)
class Signal:
    """One readout."""

    #: Binding name; unit last.
    name: str
    #: For people.
    label: str
    #: Natural unit; empty for a share or a switch.
    unit: str
    #: Lower end of the observation's range; natural values may be below.
    low: float
    #: Upper end of the observation's range; natural values may be above.
    high: float
    #: linear, log or symlog.
    scale: str
    #: Lower end after scaling.
    scaled_low: float
    #: Upper end after scaling.
    scaled_high: float
    #: operator (in both views), full, or record (in neither).
    view: str
    #: Whether it is a column of an episode's CSV.
    column: bool
    #: One sentence.
    doc: str


@dataclass(frozen=True)
class Term:
    """One part of the reward, in dollars; the reward is minus their sum."""

    #: Binding name.
    name: str
    #: For people.
    label: str
    #: One sentence.
    doc: str


@dataclass(frozen=True)
class Spec:
    """Everything that goes into an environment or comes out of it.

    An environment has it as `env.unwrapped.world_spec`.
    """

    #: Name of the world.
    world: str
    #: Rises with any change of a space or a trajectory.
    version: int
    #: Seconds of a tick, the shortest decision: 60 for the fleet, 10 for discovery.
    tick_s: int
    #: Hash of names, ranges, stops and transforms.
    hash: str
    #: Name of the scenario.
    scenario: str
    #: One line on it.
    title: str
    #: A paragraph on it.
    description: str
    #: Hash of what changes a trajectory.
    scenario_hash: str
    #: Hash of the parameters; a saved state fits no other.
    params_hash: str
    #: pcg or mulberry32.
    generator: str
    #: The signal whose fall is the cost of a step.
    cost: str
    #: The action.
    dials: tuple[Dial, ...]
    #: All readouts, those of both views and the record's.
    signals: tuple[Signal, ...]
    #: The reward's parts.
    terms: tuple[Term, ...]
    #: Names of an observation's columns, in order.
    observation: tuple[str, ...]

    @classmethod
    def from_core(cls, core: _native.VecCore) -> Spec:
        """The spec of an engine."""
        content: dict[str, Any] = core.spec()
        dials = tuple(Dial(**{**d, "stops": tuple(d["stops"])}) for d in content.pop("dials"))
        signals = tuple(Signal(**signal) for signal in content.pop("signals"))
        terms = tuple(Term(**term) for term in content.pop("terms"))
        observation = tuple(content.pop("observation"))
        return cls(dials=dials, signals=signals, terms=terms, observation=observation, **content)

    @cached_property
    def dial_names(self) -> tuple[str, ...]:
        """Names of the dials, in the order of an action."""
        return tuple(dial.name for dial in self.dials)

    @cached_property
    def signal_names(self) -> tuple[str, ...]:
        """Names of all signals, in order."""
        return tuple(signal.name for signal in self.signals)

    @cached_property
    def term_names(self) -> tuple[str, ...]:
        """Names of the reward's terms, in order."""
        return tuple(term.name for term in self.terms)

    @cached_property
    def observed(self) -> tuple[Signal, ...]:
        """The signals of an observation's columns, in order."""
        by_name = {signal.name: signal for signal in self.signals}
        return tuple(by_name[name] for name in self.observation)

    def initial_logits(self) -> tuple[npt.NDArray[np.float64], ...]:
        """For each dial, logits of its choices that keep with 90 % and press with 5 %.

        A uniform policy turns every dial in nearly every minute; begin here instead.
        """
        logits = [np.zeros(len(dial.stops) + 1) for dial in self.dials]
        for dial, values in zip(self.dials, logits, strict=True):
            values[0] = dial.initial_logit
        return tuple(logits)

    def observation_space(self) -> spaces.Box:
        """The space of one row's observation."""
        low = np.array([signal.scaled_low for signal in self.observed], dtype=np.float32)
        high = np.array([signal.scaled_high for signal in self.observed], dtype=np.float32)
        return spaces.Box(low, high, dtype=np.float32)

    def action_space(self, mode: ActionMode) -> spaces.Space[Any]:
        """The space of one row's action."""
        if mode == "multi_discrete":
            return spaces.MultiDiscrete([len(dial.stops) + 1 for dial in self.dials])
        if mode == "box":
            return spaces.Box(-1.0, 1.0, (len(self.dials),), dtype=np.float32)
        return spaces.Dict({dial.name: _natural_space(dial) for dial in self.dials})

    def reward_space(self) -> spaces.Box:
        """The space of one row's vector reward: minus each term, in dollars."""
        return spaces.Box(-math.inf, 0.0, (len(self.terms),), dtype=np.float64)

    def stop(self, dials: Mapping[str, float]) -> npt.NDArray[np.int64]:
        """A multi-discrete action that turns some dials to the stops nearest to natural values.

        `spec.stop({"min_instances": 20, "rollback": 1})`; dials that are not named keep.
        """
        action = np.zeros(len(self.dials), dtype=np.int64)
        for name, value in dials.items():
            if name not in self.dial_names:
                raise KeyError(f"no dial {name!r}: expected one of {', '.join(self.dial_names)}")
            index = self.dial_names.index(name)
            dial = self.dials[index]
            if dial.kind == "press":
                action[index] = int(value > 0.5)
            else:
                action[index] = 1 + int(np.argmin([abs(stop - value) for stop in dial.stops]))
        return action


def _natural_space(dial: Dial) -> spaces.Space[Any]:
    if dial.kind == "count":
        low, high = int(dial.low), int(dial.high)
        return spaces.Discrete(high - low + 1, start=low)
    if dial.kind in ("switch", "press"):
        return spaces.Discrete(2)
    # A shape of () makes the batched space one number for each row.
    return spaces.Box(dial.low, dial.high, (), dtype=np.float64)
