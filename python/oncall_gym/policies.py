"""Rule-based policies: the bar that a learned agent has to pass."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from oncall_gym import _native
from oncall_gym._base import Base
from oncall_gym.errors import OptionError

__all__ = ["Policy", "load_policy", "policies"]


def policies(world: str | None = None) -> dict[str, str]:
    """Names of the policies, each with a sentence; of those that play a world, or of all."""
    every = _native.policies()
    return {name: doc for name, doc, worlds in every if world is None or world in worlds}


def _engine_of(env: object) -> Base:
    """The environment under the wrappers."""
    if isinstance(env, gymnasium.Env | VectorEnv):
        env = env.unwrapped
    if not isinstance(env, Base):
        raise OptionError(f"env = {env!r}: expected an environment of oncall_gym, wrapped or not")
    return env


class Policy:
    """A rule that an operator could follow, one for each row of an environment.

    It reads the operator's dashboard, in natural units, from the environment itself, so that
    wrappers of observations do not disturb it; it never sees more than the `operator` view.
    """

    def __init__(self, name: str, env: object) -> None:
        """Builds the policy for an environment; see `load_policy`."""
        self.name = name
        base = _engine_of(env)
        self._is_single = isinstance(base, gymnasium.Env)
        self._core = _native.PolicyCore(name, base._core)

    def __repr__(self) -> str:
        """`Policy('runbook')`."""
        return f"Policy({self.name!r})"

    def act(self, env: object) -> Any:
        """Actions for the next step, valid in the environment's own action space.

        In `multi_discrete` a dial goes to the stop nearest to what the rule wants. In `box` and
        `dict` a dial that the rule keeps is set to where it stands.

        Raises:
            OrderError: the environment was never reset.
            ShapeError: it has another number of rows than the one that the policy was built for.
        """
        actions = self._core.act(_engine_of(env)._core)
        if not self._is_single:
            return actions
        if isinstance(actions, dict):
            return {name: column.reshape(()) for name, column in actions.items()}
        return actions[0]


def load_policy(name: str, env: object) -> Policy:
    """A policy by name, with parameters if you like: `runbook`, `fixed-20`, `hpa:target=0.5,min=6`.

    Parameters that are not given have the values tuned for the environment's scenario, where there
    are such. `policies()` lists the names.

    Raises:
        OptionError: there is no such policy or parameter, or it is out of its range; or `env` is
        none
            of this package's.
    """
    return Policy(name, env)
