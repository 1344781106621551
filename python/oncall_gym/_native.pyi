"""The engine and the rule-based policies, in Rust.

Arrays are the caller's: of exactly the dtypes and shapes named, C-contiguous, writeable where they
are written, none sharing memory with another. They are borrowed for one call. With one row the
first axis may be left out. `n` is the number of rows, `k` the length of an observation, `s` the
number of signals, `t` that of the reward's terms. Exceptions are those of `oncall_gym.errors`;
after one nothing has changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

_Step: TypeAlias = tuple[
    npt.NDArray[np.float32],
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    dict[str, Any],
]

__all__ = [
    "VERSION",
    "PolicyCore",
    "VecCore",
    "cli_main",
    "policies",
    "scenario_names",
    "scenario_text",
    "scenario_world",
]

VERSION: Final[str]

def scenario_names() -> list[str]:
    """Names of the scenarios that come along: those of the fleet, then those of discovery."""

def scenario_world(name: str) -> str | None:
    """World of a shipped scenario, None if there is none of that name."""

def scenario_text(name: str) -> str | None:
    """JSON text of a shipped scenario, None if there is none of that name."""

def policies() -> list[tuple[str, str, list[str]]]:
    """Names of the rule-based policies, each with a sentence and the worlds that it plays."""

def cli_main(args: Sequence[str]) -> int:
    """Runs the command line, the program's name not among the arguments; gives its exit code."""

@final
class VecCore:
    """Many environments of one scenario, stepped by one call."""

    def __new__(
        cls,
        scenario_json: str,
        *,
        file: str | None = None,
        files: Mapping[str, str] | None = None,
        num_envs: int | None = None,
        action_mode: str = "multi_discrete",
        observation: str = "operator",
        decision_interval_min: int | None = None,
        decision_interval_s: int | None = None,
        autoreset_mode: str = "next_step",
        split: str = "train",
        threads: int | None = None,
        max_minutes: int | None = None,
        demand_rps: Sequence[float] | None = None,
        scale: str | None = None,
    ) -> VecCore:
        """Reads the scenario; `files` supplies the texts that it names, when they are asked for."""
    @property
    def num_envs(self) -> int:
        """Number of rows."""
    @property
    def obs_len(self) -> int:
        """Numbers in an observation."""
    @property
    def action_mode(self) -> str:
        """Name of the action space: multi_discrete, box or dict."""
    @property
    def num_threads(self) -> int:
        """Threads that step a batch."""
    def set_num_threads(self, threads: int) -> None:
        """Changes the number of threads; results stay the same, bit for bit."""
    def spec(self) -> dict[str, Any]:
        """Dials, signals, reward terms and hashes, as plain dicts and lists."""
    def reset_into(
        self,
        seeds: int | Sequence[int | None] | None,
        mask: npt.NDArray[np.bool_] | None,
        obs: npt.NDArray[np.float32],
        signals: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Begins new episodes in the rows of the mask, or in all; writes what every row shows.

        Seeds: None keeps each row's and goes on to its next episode, an int is mixed with the row's
        number, a list is taken exactly, None in it keeping.
        """
    def step_into(
        self,
        actions: Any,
        obs: npt.NDArray[np.float32],
        rewards: npt.NDArray[np.float64],
        terminated: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
        final_obs: npt.NDArray[np.float32] | None = None,
        terms: npt.NDArray[np.float64] | None = None,
        cost: npt.NDArray[np.float64] | None = None,
        signals: npt.NDArray[np.float64] | None = None,
    ) -> int:
        """Takes one decision in every row; gives the number of rows that ended or began an episode.

        Actions: int8, int32 or int64 (n, dials), float32 or float64 (n, dials), or a dict of
        natural values (n,) by name, as the action mode says. Of `final_obs` only rows that ended
        are written.
        """
    def bind(
        self, final_obs: bool
    ) -> tuple[
        npt.NDArray[np.float32],
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        npt.NDArray[np.float32] | None,
    ]:
        """Arrays that `step_bound` writes, made once: observations, rewards, flags, last ones."""
    def step_bound(self, actions: Any) -> _Step:
        """Takes one decision in every row into these arrays; with the infos of `add_events`."""
    def step_copied(self, actions: Any) -> _Step:
        """As `step_bound`, but gives copies of the arrays."""
    def add_events(
        self,
        infos: dict[str, Any],
        final_obs: npt.NDArray[np.float32] | None = None,
        cost: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Puts the infos of the last step into a dict: of rows that ended or began an episode."""
    def send(
        self,
        actions: Any,
        *,
        final_obs: bool = False,
        terms: bool = False,
        cost: bool = False,
        signals: bool = False,
    ) -> None:
        """Sends a step off, to be played by a thread; until `recv` every other call raises."""
    def recv(
        self,
    ) -> tuple[
        int,
        npt.NDArray[np.float32],
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        npt.NDArray[np.float32] | None,
        npt.NDArray[np.float64] | None,
        npt.NDArray[np.float64] | None,
        npt.NDArray[np.float64] | None,
    ]:
        """Waits for the step that was sent: events, then the columns of `step_into`, all new."""
    def observations(self) -> npt.NDArray[np.float32]:
        """What every row shows now, (n, k); NaN for rows never reset."""
    def signals(self) -> npt.NDArray[np.float64]:
        """All signals in natural units, (n, s)."""
    def dials(self) -> npt.NDArray[np.float64]:
        """The dials as they stand in natural units, (n, dials); 0 for presses."""
    def natural(self, obs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Natural values of scaled observations, (m, k) to (m, k)."""
    def row_info(self) -> dict[str, npt.NDArray[Any]]:
        """Columns seed, episode, minute, length_min, pending, ended, is_seeded."""
    def ended(self) -> npt.NDArray[np.bool_]:
        """Rows whose episode ended in the last step."""
    def began(self) -> npt.NDArray[np.bool_]:
        """Rows that began an episode in the last call."""
    def episode_stats(self, *, running: bool = False) -> dict[str, npt.NDArray[Any]]:
        """Columns seed, episode, return_usd, steps, minutes, budget_burned, and each term."""
    def save(self, rows: Sequence[int]) -> list[bytes]:
        """States of the rows named."""
    def load(self, rows: Sequence[int], states: Sequence[bytes]) -> None:
        """Puts states into the rows named, all or none."""
    def copy_rows(self, source: Sequence[int], target: Sequence[int]) -> None:
        """Copies rows onto others, all as they were before the call."""
    def drawn(self, row: int) -> list[tuple[str, float]]:
        """What was drawn for a row's episode, truths included."""
    def scenario_of(self, row: int) -> str:
        """Name of the scenario that a row plays."""
    def digest(self, row: int) -> int:
        """Hash of everything that a row's future depends on."""
    def digest_drawn(self, row: int) -> int:
        """Hash of what was drawn for a row's episode."""
    def close(self) -> None:
        """Frees the engine; every later call but this one raises."""

@final
class PolicyCore:
    """A rule-based policy, one for each row of an environment."""

    def __new__(cls, policy: str, core: VecCore) -> PolicyCore:
        """Builds a policy from its name and parameters."""
    def act(self, core: VecCore) -> Any:
        """Decides for every row, in the engine's own action mode."""
