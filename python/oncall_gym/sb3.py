"""stable-baselines3: the vector environment as one of its `VecEnv`.

>>> from oncall_gym.sb3 import make_sb3
>>> env = make_sb3("oncall/Spike-v0", n_envs=64, seed=7)

It needs stable-baselines3 (and with it PyTorch): `pip install 'oncall-gym[sb3]'`. Do not wrap it in
`VecMonitor`: the engine counts episodes itself, and ended rows carry `info["episode"]`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from oncall_gym.errors import OptionError, OrderError
from oncall_gym.scenario import ScenarioLike
from oncall_gym.vector import OncallVectorEnv

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError(
        "oncall_gym.sb3 needs stable-baselines3: pip install 'oncall-gym[sb3]'"
    ) from error

__all__ = ["OncallSb3VecEnv", "make_sb3"]

Indices = int | Iterable[int] | None


def make_sb3(
    scenario: ScenarioLike, n_envs: int = 1, seed: int | None = None, **kwargs: Any
) -> OncallSb3VecEnv:
    """An environment for stable-baselines3.

    Args:
        scenario: a registered id such as `oncall/Spike-v0`, or a scenario as `OncallVectorEnv`
            takes it: a name, a path, a dict, a list to mix.
        n_envs: rows.
        seed: seeds the first reset; None takes fresh entropy.
        **kwargs: keywords of `OncallVectorEnv`; `autoreset_mode` and `copy` are set here.

    Raises:
        OptionError, ScenarioError: as `OncallVectorEnv`.
    """
    for name, value in (("autoreset_mode", "same_step"), ("copy", True)):
        if kwargs.setdefault(name, value) != value:
            raise OptionError(f"{name} = {kwargs[name]!r}: stable-baselines3 needs {value!r}")
    env: Any
    if isinstance(scenario, str) and scenario in gymnasium.registry:
        env = gymnasium.make_vec(scenario, num_envs=n_envs, **kwargs)
    else:
        env = OncallVectorEnv(scenario, n_envs, **kwargs)
    adapter = OncallSb3VecEnv(env)
    if seed is not None:
        adapter.seed(seed)
    return adapter


class OncallSb3VecEnv(VecEnv):  # type: ignore[misc, unused-ignore]
    """A stable-baselines3 `VecEnv` over an `OncallVectorEnv` in same-step mode.

    On an ordinary step no Python code runs for single rows: `infos` is a list of dicts that are
    empty and used again. A row whose episode ended has a dict of its own with

    * `terminal_observation`: the last observation of the episode,
    * `TimeLimit.truncated`: whether it was cut rather than ended,
    * `episode`: `r` (return, dollars), `l` (steps), `t` (seconds since the adapter was made),
    * `oncall`: sums over the episode, see `OncallVectorEnv`.

    With `cost_info=True` or `info="signals"` every row of every step has a dict of its own.
    """

    def __init__(self, env: OncallVectorEnv) -> None:
        """Adapts an environment made with `autoreset_mode="same_step"` and `copy=True`.

        Raises:
            OptionError: another autoreset mode, reused buffers, vector rewards or dict actions.
        """
        if not isinstance(env, OncallVectorEnv):
            raise OptionError(f"env = {env!r}: expected an OncallVectorEnv")
        if env.autoreset_mode is not gymnasium.vector.AutoresetMode.SAME_STEP:
            raise OptionError(f"env.autoreset_mode = {env.autoreset_mode}: expected SAME_STEP")
        if not env.copy:
            # Trainers store the observation before a step after the step has been made.
            raise OptionError("env.copy = False: expected True")
        if env.action_mode == "dict":
            raise OptionError("env.action_mode = 'dict': expected multi_discrete or box")
        if hasattr(env, "reward_space"):
            raise OptionError("env.reward_space: expected plain rewards (reward_terms=False)")
        self.env = env
        self._blank: list[dict[str, Any]] = [{} for _ in range(env.num_envs)]
        self._actions: npt.NDArray[Any] | None = None
        self._start_s = time.perf_counter()
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds the next reset: each row gets a seed mixed from `seed` and its number.

        Not `seed + row` as in stable-baselines3's own environments, of which the rows of two
        neighbouring seeds share all but one episode.

        Returns:
            The rows' seeds, as a single environment would take them.
        """
        width = np.uint32 if self.env.world_spec.generator == "mulberry32" else np.uint64
        states = np.random.SeedSequence(seed).generate_state(self.num_envs, width)
        self._seeds = [int(state) for state in states]
        return self._seeds

    def reset(self) -> npt.NDArray[np.float32]:
        """Begins a new episode in every row, with the seeds of `seed` if there are any."""
        options = self._options[0]
        if any(other != options for other in self._options):
            raise OptionError("options: expected the same for all rows")
        seeds = None if None in self._seeds else self._seeds
        observations, infos = self.env.reset(seed=seeds, options=options or None)
        self.reset_infos = [_row_of(infos, row) for row in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        self._actions = None
        return observations

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keeps the actions for `step_wait`."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[
        npt.NDArray[np.float32],
        npt.NDArray[np.float32],
        npt.NDArray[np.bool_],
        list[dict[str, Any]],
    ]:
        """Takes the step: observations, rewards, dones and a list of infos."""
        if self._actions is None:
            raise OrderError("step_wait: no actions: expected step_async before it")
        actions, self._actions = self._actions, None
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        dones = np.logical_or(terminated, truncated)
        return observations, rewards.astype(np.float32), dones, self._rows(infos, dones, terminated)

    def _rows(
        self,
        infos: Mapping[str, Any],
        dones: npt.NDArray[np.bool_],
        terminated: npt.NDArray[np.bool_],
    ) -> list[dict[str, Any]]:
        """The infos as a list of dicts."""
        shown = {key: infos[key] for key in ("cost", "signals", "terms") if key in infos}
        if shown:
            rows = [_row_of(shown, row) for row in range(self.num_envs)]
        else:
            if any(self._blank):
                # A caller wrote into them. It may keep those; other steps must not see that.
                self._blank = [{} for _ in range(self.num_envs)]
            rows = self._blank.copy()
        if not infos or "final_obs" not in infos:
            return rows
        sums = infos["final_info"]["oncall"]
        for row in np.flatnonzero(dones).tolist():
            numbers = _row_of(sums, row)
            rows[row] = {
                **rows[row],
                "terminal_observation": infos["final_obs"][row],
                "TimeLimit.truncated": not terminated[row],
                "episode": {
                    "r": numbers["return_usd"],
                    "l": numbers["steps"],
                    "t": round(time.perf_counter() - self._start_s, 6),
                },
                "oncall": numbers,
            }
        return rows

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """The dashboard of every row."""
        return list(self.env.render())

    def _count(self, indices: Indices) -> int:
        return len(list(self._get_indices(indices)))

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the environment, once for each row asked for."""
        return [getattr(self.env, attr_name)] * self._count(indices)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Sets an attribute of the environment, which all rows share.

        Raises:
            OptionError: only some rows were named.
        """
        if self._count(indices) != self.num_envs:
            raise OptionError(f"indices = {indices!r}: expected all rows, they share {attr_name!r}")
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of the environment once; a result for each row asked for.

        Methods act on the whole batch, so that each row has the same result.
        """
        result = getattr(self.env, method_name)(*method_args, **method_kwargs)
        return [result] * self._count(indices)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """True for `Monitor`, since ended rows carry `episode`; False for every other wrapper."""
        return [issubclass(Monitor, wrapper_class)] * self._count(indices)


def _row_of(infos: Mapping[str, Any], row: int) -> dict[str, Any]:
    """One row of a dict of arrays, without the masks, as plain Python numbers."""
    picked: dict[str, Any] = {}
    for key, value in infos.items():
        if key.startswith("_"):
            continue
        if isinstance(value, Mapping):
            picked[key] = _row_of(value, row)
        else:
            picked[key] = value[row].item() if value.ndim == 1 else value[row]
    return picked
