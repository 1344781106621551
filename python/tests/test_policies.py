"""Rule-based policies from Python."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers.vector import NormalizeObservation

import oncall_gym
from conftest import ACTION_MODES
from oncall_gym import OncallEnv, OncallVectorEnv, OptionError, OrderError, ShapeError


def play(env: OncallVectorEnv, name: str, steps: int) -> np.ndarray:
    """The returns of a policy's shifts."""
    policy = oncall_gym.load_policy(name, env)
    env.reset(seed=[1, 2, 3])
    total = np.zeros(env.num_envs)
    for _ in range(steps):
        action = policy.act(env)
        assert action in env.action_space
        total += env.step(action)[1]
    return total


@pytest.mark.parametrize("mode", ACTION_MODES)
@pytest.mark.parametrize("name", oncall_gym.policies("fleet"))
def test_actions_are_valid(name: str, mode: str) -> None:
    env = OncallVectorEnv("bad-build", 3, action_mode=mode)
    play(env, name, 40)


@pytest.mark.parametrize("mode", ACTION_MODES)
@pytest.mark.parametrize("name", oncall_gym.policies("discovery"))
def test_actions_are_valid_in_discovery(name: str, mode: str) -> None:
    env = OncallVectorEnv("pair-check-crash", 3, action_mode=mode)
    play(env, name, 40)


def test_the_rule_below_a_trained_policy_decides_whenever_it_is_asked() -> None:
    """In discovery: what it does follows from the seed and from how often it is asked."""

    def asked(seconds: int, seeds: list[int]) -> list[list[float]]:
        env = OncallVectorEnv(
            "mixed-discovery", len(seeds), action_mode="box", decision_interval_s=seconds
        )
        env.reset(seed=seeds)
        policy = oncall_gym.load_policy("ppo", env)
        return [env.step(policy.act(env))[0][0].tolist() for _ in range(600 // seconds)]

    every_tick = asked(10, [5])
    assert every_tick == asked(10, [5, 6])
    assert every_tick[2::3] != asked(30, [5])


def test_policies_are_listed_by_the_worlds_that_they_play() -> None:
    fleet, discovery = oncall_gym.policies("fleet"), oncall_gym.policies("discovery")
    assert "runbook" in fleet
    assert "runbook" not in discovery
    assert oncall_gym.policies() == {**fleet, **discovery}
    with pytest.raises(OptionError, match="discovery"):
        oncall_gym.load_policy("runbook", OncallVectorEnv("calm", 1))


def test_holding_keeps_the_dials() -> None:
    returns = []
    for mode in ACTION_MODES:
        env = OncallVectorEnv("spike", 3, action_mode=mode)
        returns.append(play(env, "hold", 60))
    assert returns[0].tolist() == returns[2].tolist()
    assert returns[1] == pytest.approx(returns[0], rel=1e-5)


def test_a_fixed_fleet_is_what_its_name_says() -> None:
    env = OncallVectorEnv("steady", 3)
    play(env, "fixed-20", 30)
    assert env.dials()["min_instances"].tolist() == [20.0] * 3
    assert env.signals()["serving"].tolist() == [20.0] * 3


def test_the_runbook_beats_holding() -> None:
    for mode in ACTION_MODES:
        env = OncallVectorEnv("bad-build", 3, action_mode=mode)
        assert (play(env, "runbook", 120) > play(env, "hold", 120)).all()


def test_a_random_policy_repeats_with_its_seed() -> None:
    env = OncallVectorEnv("spike", 3)
    first = play(env, "random", 30)
    assert play(env, "random", 30).tolist() == first.tolist()
    policy = oncall_gym.load_policy("random", env)
    env.reset(seed=[1, 2, 3])
    batch = policy.act(env)
    single = OncallEnv("spike")
    alone = oncall_gym.load_policy("random", single)
    single.reset(seed=2)
    assert alone.act(single).tolist() == batch[1].tolist()


@pytest.mark.parametrize("mode", ACTION_MODES)
def test_wrapped_and_single_environments(mode: str) -> None:
    env = gymnasium.make("oncall/Spike-v0", action_mode=mode)
    policy = oncall_gym.load_policy("target-tracking", env)
    env.reset(seed=1)
    for _ in range(5):
        action = policy.act(env)
        assert action in env.action_space
        env.step(action)
    envs = NormalizeObservation(gymnasium.make_vec("oncall/Spike-v0", num_envs=2, action_mode=mode))
    policy = oncall_gym.load_policy("hpa:target=0.5", envs)
    envs.reset(seed=1)
    envs.step(policy.act(envs))


def test_a_new_episode_begins_the_rule_anew() -> None:
    env = OncallVectorEnv("bad-build", 2, max_minutes=20)
    policy = oncall_gym.load_policy("runbook", env)
    env.reset(seed=1)
    for _ in range(3 * 21):
        env.step(policy.act(env))
    played = env.episode_stats()["return_usd"]
    fresh = OncallVectorEnv("bad-build", 2, max_minutes=20)
    rule = oncall_gym.load_policy("runbook", fresh)
    fresh.reset(seed=1)
    fresh.reset()
    fresh.reset()
    for _ in range(20):
        fresh.step(rule.act(fresh))
    assert played.tolist() == fresh.episode_stats()["return_usd"].tolist()


BAD: dict[str, Any] = {
    "runbok": "runbok",
    "hpa:targt=0.5": "targt",
    "hpa:target=50": "target",
    "": "policy",
}


@pytest.mark.parametrize("name", BAD)
def test_policies_that_are_none(name: str) -> None:
    with pytest.raises(OptionError, match=BAD[name]):
        oncall_gym.load_policy(name, OncallEnv("spike"))


def test_environments_that_do_not_fit() -> None:
    env = OncallVectorEnv("spike", 2)
    policy = oncall_gym.load_policy("hold", env)
    with pytest.raises(OrderError, match="never reset"):
        policy.act(env)
    other = OncallVectorEnv("spike", 3)
    other.reset(seed=1)
    with pytest.raises(ShapeError, match="3 rows, expected 2"):
        policy.act(other)
    with pytest.raises(OptionError, match="oncall_gym"):
        oncall_gym.load_policy("hold", gymnasium.make("CartPole-v1"))
