"""The ids, registered when the package is imported.

No id has `max_episode_steps`: the engine truncates at the end of the shift, and tells so.
"""

from __future__ import annotations

from typing import Any

import gymnasium

__all__ = ["DISCOVERY_IDS", "IDS", "register_all"]

#: Scenario of each id of discovery.
DISCOVERY_IDS = {
    "oncall/DiscoveryCalm-v0": "calm",
    "oncall/DiscoveryRollingDeploy-v0": "rolling-deploy",
    "oncall/DiscoveryCrashWave-v0": "crash-wave",
    "oncall/DiscoveryNodeFailures-v0": "node-failures",
    "oncall/DiscoveryBadHealthCheck-v0": "bad-health-check",
    "oncall/DiscoveryControlPlaneOutage-v0": "control-plane-outage",
    "oncall/DiscoveryReconnectStorm-v0": "reconnect-storm",
    "oncall/DiscoveryRegionLoss-v0": "region-loss",
    "oncall/DiscoveryBadRelay-v0": "bad-relay",
    "oncall/DiscoveryLeaderChange-v0": "leader-change",
    "oncall/DiscoveryMixed-v0": "mixed-discovery",
    "oncall/DiscoveryMixedHeldout-v0": "mixed-discovery-heldout",
    "oncall/Discovery-v0": None,
}

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
    **DISCOVERY_IDS,
}


def register_all() -> None:
    """Registers every id that is not there yet.

    `oncall/Fleet-v0` and `oncall/Discovery-v0` take any `scenario=`; where none is given they play
    `steady` and `calm`. All ids of discovery take `scale=`.
    """
    for env_id, scenario in IDS.items():
        if env_id in gymnasium.registry:
            continue
        kwargs: dict[str, Any] = {}
        if scenario is not None:
            kwargs["scenario"] = scenario
        elif env_id in DISCOVERY_IDS:
            kwargs["scenario"] = "calm"
        gymnasium.register(
            id=env_id,
            entry_point="oncall_gym.env:OncallEnv",
            vector_entry_point="oncall_gym.vector:OncallVectorEnv",
            kwargs=kwargs,
        )
