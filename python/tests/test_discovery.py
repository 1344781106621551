"""Discovery through Gymnasium: its own clock, its scales, and what every world promises."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import oncall_gym
from conftest import ACTION_MODES, AUTORESET, VIEWS, digests, keep, same, trace
from oncall_gym import OncallEnv, OncallVectorEnv, OptionError, StateError
from oncall_gym.render import Header, draw

#: A scenario of its own, short enough that episodes end within a few steps.
SHORT: dict[str, Any] = {
    "schema_version": 1,
    "world": "discovery",
    "name": "short",
    "shift": {"length_min": 1},
    "opening": {"drain_period_s": {"uniform": [20, 60]}},
}


@pytest.mark.parametrize(
    ("mode", "autoreset"),
    [*(("multi_discrete", mode) for mode in AUTORESET), ("box", "same_step"), ("dict", "disabled")],
)
def test_the_vector_checker_finds_nothing(mode: str, autoreset: str) -> None:
    def factory() -> Any:
        return OncallVectorEnv(SHORT, 3, action_mode=mode, autoreset_mode=autoreset)

    oncall_gym.check_vector_env(factory)


def test_gymnasium_finds_nothing_in_the_board() -> None:
    env = gymnasium.make("oncall/DiscoveryCrashWave-v0", render_mode="ansi")
    check_env(env.unwrapped)
    env.close()


def test_spaces() -> None:
    spec = OncallVectorEnv("calm", 2).world_spec
    assert (spec.world, spec.tick_s, spec.cost) == ("discovery", 10, "budget_left")
    assert len(spec.dials) == 33
    sizes = spec.action_space("multi_discrete").nvec
    assert ((sizes >= 4) & (sizes <= 9)).all()
    for view, width in zip(VIEWS, (154, 165), strict=True):
        env = OncallEnv("calm", observation=view)
        observation, _ = env.reset(seed=1)
        assert observation.shape == (width,)
        assert observation in env.observation_space
        names = env.world_spec.observation
        assert ("truth_scenario" in names) == (view == "full")
    # Everything stands at its default, in every way to say so.
    standing = env.dials()
    assert standing == {dial.name: dial.default for dial in spec.dials}


@pytest.mark.parametrize("mode", ACTION_MODES)
def test_a_wish_slides_and_is_kept(mode: str) -> None:
    env = OncallEnv("calm", action_mode=mode)
    env.reset(seed=1)
    spec = env.world_spec
    dial = next(d for d in spec.dials if d.name == "connect_timeout_ms")
    index = spec.dial_names.index(dial.name)
    seen = []
    for _ in range(5):
        if mode == "multi_discrete":
            action: Any = spec.stop({dial.name: dial.high})
        elif mode == "box":
            # A box sets every dial: keep means to say where they stand.
            action = env.action_space.sample() * 0
            action[index] = 1
        else:
            action = {dial.name: dial.high}
        env.step(action)
        seen.append(env.dials()[dial.name])
    assert dial.default < seen[0] < dial.high
    assert seen[-1] == dial.high
    assert env.signals()["dial_connect_timeout_ms"] == dial.high


def test_each_world_takes_the_interval_of_its_own_clock() -> None:
    env = OncallEnv("calm", decision_interval_s=30)
    env.reset(seed=1)
    env.step(keep(env))
    assert env.row_info()["minute"] == 0.5
    with pytest.raises(OptionError, match="min = 1: expected decision_interval_s"):
        OncallEnv("calm", decision_interval_min=1)
    with pytest.raises(OptionError, match="s = 60: expected decision_interval_min"):
        OncallEnv("steady", decision_interval_s=60)
    for seconds, expected in ((15, "a multiple of 10"), (0, "10..=14400"), (20_000, "10..=14400")):
        with pytest.raises(OptionError, match=f"_s = {seconds}: expected {expected}"):
            OncallEnv("calm", decision_interval_s=seconds)
    for slip in (-10, 2.5, "30"):
        with pytest.raises(OptionError, match="decision_interval_s"):
            OncallEnv("calm", decision_interval_s=slip)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="demand_rps: this world has no demand"):
        OncallEnv("calm", demand_rps=[1.0])


def test_a_scenario_is_played_at_every_scale() -> None:
    rates = []
    for scale in ("small", "tenth"):
        env = gymnasium.make("oncall/Discovery-v0", scenario="crash-wave", scale=scale).unwrapped
        assert isinstance(env, OncallEnv)
        env.reset(seed=4)
        rates.append(env.signals()["requests_per_s"])
        drawn = env.drawn()
    assert rates[1] > 20 * rates[0]
    # What is drawn does not depend on it.
    small = OncallEnv("crash-wave")
    small.reset(seed=4)
    assert small.drawn() == drawn
    for bad in ("huge", 10):
        with pytest.raises(OptionError, match="scale"):
            OncallEnv("calm", scale=bad)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="only scenarios of discovery"):
        OncallEnv("spike", scale="small")


def test_a_spec_rebuilds_the_same_environment() -> None:
    kwargs: dict[str, Any] = {"scale": "small", "decision_interval_s": 20, "split": "test"}
    envs = gymnasium.make_vec("oncall/DiscoveryMixed-v0", num_envs=3, **kwargs)
    twin = gymnasium.make_vec(EnvSpec.from_json(envs.spec.to_json()))
    envs.action_space.seed(1)
    action = envs.action_space.sample()
    for env in (envs, twin):
        env.reset(seed=2)
        env.step(action)
    assert digests(twin) == digests(envs)


def test_rows_are_what_single_environments_play(actions: Any) -> None:
    envs = OncallVectorEnv("pair-outage-reconnect", 4, threads=2)
    batch = actions(envs, 20)
    envs.reset(seed=[3, 4, 5, 6])
    single = OncallEnv("pair-outage-reconnect")
    single.reset(seed=5)
    for action in batch:
        rewards = envs.step(action)[1]
        assert single.step(action[2])[1] == rewards[2]
    assert single.digest() == envs.digest(2)


def test_a_run_repeats(actions: Any) -> None:
    env = OncallVectorEnv("mixed-discovery", 3, autoreset_mode="same_step", max_minutes=2)
    batch = actions(env, 20)
    runs = [trace(env, batch, seed=seed) for seed in (7, 8, 7)]
    assert same(runs[0], runs[2])
    assert not same(runs[0], runs[1])


def test_copies_and_pickles_go_on_in_the_middle(actions: Any) -> None:
    env = OncallVectorEnv("reconnect-storm", 2)
    batch = actions(env, 12)
    env.reset(seed=1)
    for action in batch[:6]:
        env.step(action)
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    states = env.get_state()
    for twin in twins:
        assert digests(twin) == digests(env)
    for action in batch[6:]:
        env.step(action)
        for twin in twins:
            twin.step(action)
    for twin in twins:
        assert digests(twin) == digests(env)
    other = OncallVectorEnv("calm", 2)
    other.reset(seed=1)
    before = digests(other)
    with pytest.raises(StateError, match="another scenario"):
        other.set_state(states)
    with pytest.raises(StateError):
        other.set_state([states[0][:-3], states[1]])
    assert digests(other) == before


def test_a_list_of_scenarios_is_of_one_world() -> None:
    envs = OncallVectorEnv(["calm", "crash-wave"], 16)
    envs.reset(seed=1)
    assert {envs.scenario_of(row) for row in range(16)} == {"calm", "crash-wave"}
    with pytest.raises(oncall_gym.ScenarioError, match=r'found "fleet", expected "discovery"'):
        OncallVectorEnv(["calm", "spike"], 1)


def test_all_mistakes_of_a_scenario_are_told_at_once() -> None:
    wrong = {**SHORT, "rollouts": [{"share": 2}], "opening": {"probe_interval_s": 0.5}}
    with pytest.raises(oncall_gym.ScenarioError) as caught:
        OncallEnv(wrong)
    text = str(caught.value)
    assert "$.rollouts[0].share: found 2" in text
    assert "$.opening.probe_interval_s: found 0.5" in text


def test_the_board_is_a_text() -> None:
    env = OncallEnv("control-plane-outage", render_mode="ansi")
    env.reset(seed=1)
    for _ in range(20):
        env.step(keep(env))
    board = env.render()
    assert all(len(line) <= 80 for line in board.splitlines())
    parts = ["control-plane-outage", "minute 3/60", "READY, r0", "the other 33", "request_budget"]
    for part in parts:
        assert part in board
    env.step(env.world_spec.stop({"failure_threshold": 2}))
    assert "failure_threshold 2" in env.render()
    assert "the other 32" in env.render()


def test_the_board_is_a_picture() -> None:
    """Each part is where it belongs: panels in three columns, then the dials and the dollars."""
    pytest.importorskip("matplotlib", reason="needs oncall-gym[render]")
    env = OncallEnv("control-plane-outage", render_mode="rgb_array")
    assert env.metadata["render_modes"] == ["ansi", "rgb_array"]
    env.reset(seed=1)
    for _ in range(30):
        env.step(keep(env))
    before = env.render()
    assert (before.dtype, before.shape) == (np.uint8, (640, 960, 3))
    history = env._dashboards._histories[0]
    spec = env.world_spec
    header = Header("control-plane-outage", 1, 0, 60)
    image = draw(history, spec, header)
    assert np.array_equal(before[100:], image[100:])

    def changes(name: str, value: float, columns: slice, rows: slice) -> bool:
        """Whether a latest value shows in a part of the picture, and nowhere else."""
        other = pickle.loads(pickle.dumps(history))
        row = np.array([other.last(signal) for signal in spec.signal_names])
        row[spec.signal_names.index(name)] = value
        other._rows[other._count - 1] = row
        changed = (draw(other, spec, header) != image).any(axis=2)
        inside = changed[rows, columns].sum()
        return bool(0 < inside == changed.sum())

    assert changes("withdrawal_s_p99", 60.0, slice(320, 645), slice(80, 220))
    assert changes("ready_share_r1", 0.4, slice(0, 320), slice(200, 340))
    assert changes("dial_relays_per_region", 33.0, slice(0, 645), slice(460, 640))
    assert changes("catalog_seen_r2", 0.0, slice(0, 960), slice(0, 80))


def test_terms_add_up_and_cost_is_the_budget_burned() -> None:
    env = OncallVectorEnv("bad-health-check", 4, info="signals", cost_info=True, split="test")
    env.reset(seed=3)
    cost, total = np.zeros(4), np.zeros(4)
    for _ in range(300):
        _, rewards, _, _, infos = env.step(keep(env))
        terms = sum(infos["terms"][name] for name in env.world_spec.term_names)
        assert rewards == pytest.approx(-terms, abs=1e-9)
        assert (infos["signals"]["violations"] == 0).all()
        cost += infos["cost"]
        total += rewards
    assert cost == pytest.approx(1.0 - env.signals()["budget_left"])
    assert (cost > 0).any()
    assert (total < 0).all()
