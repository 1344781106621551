"""The ids, registered when the package is imported.

No id has `max_episode_steps`: the engine truncates at the end of the shift, and tells so.
"""

from __future__ import annotations

import gymnasium

__all__ = ["IDS", "register_all"]

#: Scenario of each id.
IDS = {
    "oncall/Spike-v0": "spike",
    "oncall/BadBuild-v0": "bad-build",
    "oncall/CacheFlush-v0": "cache-flush",
    "oncall/Steady-v0": "steady",
    "oncall/Mixed-v0": "mixed",
    "oncall/SpikeHard-v0": "spike-hard",
    "oncall/BadBuildHard-v0": "bad-build-hard",
    "oncall/CacheFlushHard-v0": "cache-flush-hard",
    "oncall/MixedHard-v0": "mixed-hard",
    "oncall/Fleet-v0": None,
}


def register_all() -> None:
    """Registers every id that is not there yet; `oncall/Fleet-v0` takes any `scenario=`."""
    for env_id, scenario in IDS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                id=env_id,
                entry_point="oncall_gym.env:OncallEnv",
                vector_entry_point="oncall_gym.vector:OncallVectorEnv",
                kwargs={} if scenario is None else {"scenario": scenario},
            )
