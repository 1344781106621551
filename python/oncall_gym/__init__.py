"""An on-call gym: be the operator of a web service on a bad morning.

>>> import gymnasium
>>> import oncall_gym
>>> env = gymnasium.make("oncall/Spike-v0")
>>> observation, info = env.reset(seed=7)
>>> info
{'seed': 7, 'episode_number': 0}
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
>>> envs = gymnasium.make_vec("oncall/Spike-v0", num_envs=64, autoreset_mode="same_step")
>>> observations, infos = envs.reset(seed=7)
>>> observations.shape, observations.dtype
((64, 42), dtype('float32'))

Importing the package registers the ids; see `IDS`. `OncallVectorEnv` lists all keywords and infos.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oncall_gym._native import VERSION as __version__
from oncall_gym.env import OncallEnv
from oncall_gym.errors import (
    ActionError,
    DtypeError,
    InternalError,
    OncallError,
    OptionError,
    OrderError,
    ScenarioError,
    ShapeError,
    StateError,
)
from oncall_gym.policies import Policy, load_policy, policies
from oncall_gym.registration import IDS, register_all
from oncall_gym.scenario import scenario_names
from oncall_gym.spaces import Dial, Signal, Spec, Term
from oncall_gym.vector import OncallVectorEnv

if TYPE_CHECKING:
    from oncall_gym.checker import check_vector_env as check_vector_env

__all__ = [
    "IDS",
    "ActionError",
    "Dial",
    "DtypeError",
    "InternalError",
    "OncallEnv",
    "OncallError",
    "OncallVectorEnv",
    "OptionError",
    "OrderError",
    "Policy",
    "ScenarioError",
    "ShapeError",
    "Signal",
    "Spec",
    "StateError",
    "Term",
    "__version__",
    "check_vector_env",
    "load_policy",
    "policies",
    "scenario_names",
]

register_all()


def __getattr__(name: str) -> Any:
    """The checker is loaded when it is first asked for: training does not need it."""
    if name == "check_vector_env":
        from oncall_gym.checker import check_vector_env

        return check_vector_env
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
