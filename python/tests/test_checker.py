"""`check_vector_env` finds each fault that it claims to find, and passes what is right."""

from __future__ import annotations

from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

from oncall_gym import OncallVectorEnv
from oncall_gym.checker import VectorEnvError, check_vector_env, rule_names

N = 3
Data: TypeAlias = Any
"""Whatever goes through an environment: these classes break its types on purpose."""


class Walk(VectorEnv[Any, Any, Any]):
    """A correct vector environment: each row a random walk that ends at 1 or after 12 steps."""

    def __init__(
        self,
        num_envs: int = N,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        length: int = 12,
    ) -> None:
        self.num_envs = num_envs
        self.length = length
        self.render_mode = None
        self.autoreset_mode = autoreset_mode
        self.metadata = {"render_modes": [], "render_fps": 1, "autoreset_mode": autoreset_mode}
        self.single_observation_space = gym.spaces.Box(-9.0, 9.0, (2,), np.float32)
        self.single_action_space = gym.spaces.Discrete(3)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.generators = [np.random.default_rng() for _ in range(num_envs)]
        self.x = np.full(num_envs, np.nan)
        self.age = np.zeros(num_envs, np.int64)
        self.over = np.zeros(num_envs, np.bool_)
        self.ready = False

    def observe(self) -> Data:
        return np.stack([self.x, self.age / 12], axis=1).astype(np.float32)

    def begin(self, row: int) -> None:
        self.x[row] = self.generators[row].uniform(-0.5, 0.5)
        self.age[row] = 0
        self.over[row] = False

    def seeds(self, seed: Data) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int):
            return [seed + row for row in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError("seed: wrong length")
        return list(seed)

    def mask(self, options: dict[str, Any] | None) -> Data:
        mask = (options or {}).get("reset_mask")
        if mask is None:
            return np.ones(self.num_envs, np.bool_)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError("reset_mask: not an array of bool")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError("reset_mask: wrong shape or empty")
        return mask

    def reset(self, *, seed: Data = None, options: dict[str, Any] | None = None) -> Data:
        mask = self.mask(options)
        for row, value in enumerate(self.seeds(seed)):
            if value is not None:
                self.generators[row] = np.random.default_rng(value)
            if mask[row]:
                self.begin(row)
        self.ready = True
        return self.observe(), self.reset_infos(mask)

    def reset_infos(self, mask: Data) -> dict[str, Any]:
        return {"age": self.age.copy(), "_age": mask.copy()}

    def step(self, actions: Data) -> Data:
        if self.closed or not self.ready:
            raise RuntimeError("step: closed or not reset")
        old = self.over.copy()
        if self.autoreset_mode is AutoresetMode.DISABLED and old.any():
            raise RuntimeError("step: an ended row was not reset")
        self.advance(actions, ~old)
        for row in np.flatnonzero(old):
            self.begin(int(row))
        terminated = ~old & (np.abs(self.x) > 1)
        truncated = ~old & ~terminated & (self.age >= self.length)
        self.over = terminated | truncated
        rewards = np.where(old, 0.0, 1.0 + self.x)
        infos: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self.over.any():
            infos = {
                "final_obs": self.observe(),
                "_final_obs": self.over.copy(),
                "final_info": {"age": self.age.copy(), "_age": self.over.copy()},
                "_final_info": self.over.copy(),
            }
            for row in np.flatnonzero(self.over):
                self.begin(int(row))
        return self.observe(), rewards, terminated, truncated, infos

    def advance(self, actions: Data, live: Data) -> None:
        for row in np.flatnonzero(live):
            noise = self.generators[row].normal(0.0, 0.3)
            self.x[row] += 0.4 * (int(actions[row]) - 1) + noise
            self.age[row] += 1


MODES = list(AutoresetMode)


@pytest.mark.parametrize("mode", MODES)
def test_a_correct_environment_passes_strictly(mode: AutoresetMode) -> None:
    def make(num_envs: int = N, autoreset_mode: AutoresetMode = mode) -> VectorEnv[Any, Any, Any]:
        return Walk(num_envs, autoreset_mode)

    report = check_vector_env(make, strict=True)
    assert list(report) == []
    other_modes = {
        "autoreset-next-step": AutoresetMode.NEXT_STEP,
        "autoreset-same-step": AutoresetMode.SAME_STEP,
        "final-info": AutoresetMode.SAME_STEP,
        "autoreset-disabled": AutoresetMode.DISABLED,
    }
    skipped = {name for name, its in other_modes.items() if its is not mode} | {"render"}
    assert set(report.not_checked) == skipped
    assert set(report.checked) == set(rule_names())


@pytest.mark.parametrize("mode", MODES)
def test_gymnasium_sync_passes(mode: AutoresetMode) -> None:
    def make() -> VectorEnv[Any, Any, Any]:
        return SyncVectorEnv([lambda: gym.make("CartPole-v1")] * N, autoreset_mode=mode)

    report = check_vector_env(make)
    assert list(report) == []
    # Strictly it does not: it takes the mask out of the options, so that wrappers lose it.
    strict = check_vector_env(make, strict=True, raise_on_first=False)
    assert "options-unchanged" in strict.rules() <= {"options-unchanged", "step-after-close"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action_mode", ["multi_discrete", "box", "dict"])
def test_this_package_passes_strictly(mode: AutoresetMode, action_mode: Any) -> None:
    def make(num_envs: int = N, autoreset_mode: AutoresetMode = mode) -> VectorEnv[Any, Any, Any]:
        return OncallVectorEnv(
            "mixed-hard",
            num_envs,
            action_mode=action_mode,
            autoreset_mode=autoreset_mode,
            max_minutes=12,
            render_mode="ansi",
        )

    report = check_vector_env(make, strict=True, steps=40)
    assert list(report) == []
    assert all("autoreset mode is" in why for why in report.not_checked.values())


def test_gymnasium_cartpole_vector_faults_are_found() -> None:
    def make() -> VectorEnv[Any, Any, Any]:
        return gym.make_vec("CartPole-v1", num_envs=N)

    report = check_vector_env(make, raise_on_first=False)
    assert {
        "autoreset-attribute",
        "seed-list",
        "seed-list-gaps",
        "reset-mask",
        "reset-mask-refused",
    } <= report.rules()
    assert not report.rules() & {"spaces", "batched-spaces", "buffers", "seed-int", "determinism"}


def test_an_environment_instead_of_a_factory_stays_open() -> None:
    env = Walk()
    report = check_vector_env(env)
    assert list(report) == []
    assert not env.closed
    assert {"close", "unseeded-differ", "batch-size"} <= set(report.not_checked)


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="env: expected"):
        check_vector_env(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="it made a"):
        check_vector_env(lambda: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="no such rule"):
        check_vector_env(Walk, skip=["nonsense"])
    with pytest.raises(ValueError, match="steps"):
        check_vector_env(Walk, steps=0)


def test_ends_that_do_not_come_are_reported_as_not_checked() -> None:
    report = check_vector_env(lambda: Walk(length=50), steps=1, raise_on_first=False)
    assert "no episode ended" in report.not_checked["autoreset-next-step"]


# --- one broken environment for each rule -------------------------------------------------------


class Broken(Walk):
    """A `Walk` that the class attribute `mode` puts into one of the three modes."""

    mode = AutoresetMode.NEXT_STEP

    def __init__(self, num_envs: int = N) -> None:
        super().__init__(num_envs, self.mode)


class NumEnvsFloat(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.num_envs = 3.0  # type: ignore[assignment]


class NoSpaces(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = None  # type: ignore[assignment]


class SingleSpaces(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.observation_space = self.single_observation_space


class ModeAsString(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.metadata["autoreset_mode"] = "NextStep"


class OtherMode(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.metadata["autoreset_mode"] = AutoresetMode.SAME_STEP


class UnknownRenderMode(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.render_mode = "rgb_array"


class StepsBeforeReset(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.ready = True


class OnlyObservation(Broken):
    def reset(self, **kwargs: Data) -> Data:
        return super().reset(**kwargs)[0]


class DoublePrecision(Broken):
    def observe(self) -> Data:
        return super().observe().astype(np.float64)


class InfoWithoutMask(Broken):
    def reset_infos(self, mask: Data) -> dict[str, Any]:
        return {"age": self.age.copy()}


class InfoOfOneRow(Broken):
    def reset_infos(self, mask: Data) -> dict[str, Any]:
        return {"age": self.age[:1].copy(), "_age": mask.copy()}


class Changed(Broken):
    """Passes what `step` returns through `change`."""

    def step(self, actions: Data) -> Data:
        return self.change(*super().step(actions))

    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        raise NotImplementedError


class FourValues(Changed):
    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        return obs, rewards, term | trunc, infos


class IntegerRewards(Changed):
    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        return obs, rewards.astype(np.int64), term, trunc, infos


class ColumnRewards(Changed):
    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        return obs, rewards[:, None], term, trunc, infos


class ByteFlags(Changed):
    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        return obs, rewards, term.astype(np.uint8), trunc, infos


class OutsideLater(Changed):
    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        obs[obs[:, 1] > 0.5, 0] += 20
        return obs, rewards, term, trunc, infos


class NotFiniteLater(Changed):
    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        rewards[trunc] = np.nan
        return obs, rewards, term, trunc, infos


class ChangesActions(Broken):
    def step(self, actions: Data) -> Data:
        actions += 1
        actions %= 3
        return super().step(actions)


class ReusedBuffer(Broken):
    buffer: Data = None

    def observe(self) -> Data:
        if self.buffer is None:
            self.buffer = np.zeros((self.num_envs, 2), np.float32)
        self.buffer[:] = super().observe()
        return self.buffer


class ReusedFlags(Changed):
    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        return obs, rewards, self.over, trunc & False, infos


class IgnoresSeed(Broken):
    def seeds(self, seed: Data) -> list[int | None]:
        super().seeds(seed)
        return [None] * self.num_envs


class ConstantSeed(Broken):
    def seeds(self, seed: Data) -> list[int | None]:
        super().seeds(seed)
        return [42 + row for row in range(self.num_envs)]


class SameRows(Broken):
    def seeds(self, seed: Data) -> list[int | None]:
        return [seed] * self.num_envs if isinstance(seed, int) else super().seeds(seed)


class FirstOfList(Broken):
    def seeds(self, seed: Data) -> list[int | None]:
        return super().seeds(seed if seed is None or isinstance(seed, int) else seed[0])


class RefusesGaps(Broken):
    def seeds(self, seed: Data) -> list[int | None]:
        seeds = super().seeds(seed)
        if seed is not None and None in seeds:
            raise TypeError("seed: expected integers")
        return seeds


class AnyLength(Broken):
    def seeds(self, seed: Data) -> list[int | None]:
        seed = seed[: self.num_envs] if isinstance(seed, list) else seed
        return super().seeds(seed)


class RepeatsEpisode(Broken):
    last: Data = None

    def seeds(self, seed: Data) -> list[int | None]:
        self.last = self.last if seed is None else seed
        return super().seeds(self.last)


class FixedStart(Broken):
    def __init__(self, num_envs: int = N) -> None:
        super().__init__(num_envs)
        self.generators = [np.random.default_rng(row) for row in range(num_envs)]


class HiddenCounter(Broken):
    made = 0

    def __init__(self, num_envs: int = N) -> None:
        super().__init__(num_envs)
        HiddenCounter.made += 1
        self.shift = 1e-3 * HiddenCounter.made

    def observe(self) -> Data:
        return (super().observe() + self.shift).astype(np.float32)


class LeaksToNeighbours(Broken):
    def advance(self, actions: Data, live: Data) -> None:
        super().advance(actions, live)
        self.x += 0.01 * self.x.mean()


class KnowsBatchSize(Broken):
    def begin(self, row: int) -> None:
        super().begin(row)
        self.x[row] += 0.01 * self.num_envs


class RewardsResetStep(Changed):
    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        return obs, np.where(rewards == 0, 0.5, rewards), term, trunc, infos


class NeverStartsAgain(Broken):
    def begin(self, row: int) -> None:
        if not self.over[row]:
            super().begin(row)
        self.over[row] = False

    def seeds(self, seed: Data) -> list[int | None]:
        self.over[:] = False
        return super().seeds(seed)


class PlaysResetStep(Broken):
    def step(self, actions: Data) -> Data:
        old = self.over.copy()
        result = super().step(actions)
        self.x[old] += 0.1 * np.asarray(actions)[old]
        return self.observe(), *result[1:]


class LosesFinal(Changed):
    mode = AutoresetMode.SAME_STEP

    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        return obs, rewards, term, trunc, {}


class FinalIsReset(Changed):
    mode = AutoresetMode.SAME_STEP

    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        return obs, rewards, term, trunc, {**infos, **({"final_obs": obs} if infos else {})}


class FinalMaskWrong(Changed):
    mode = AutoresetMode.SAME_STEP

    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        if infos:
            infos["_final_obs"] = np.ones(self.num_envs, np.bool_)
        return obs, rewards, term, trunc, infos


class NoFinalInfo(Changed):
    mode = AutoresetMode.SAME_STEP

    def change(self, obs: Data, rewards: Data, term: Data, trunc: Data, infos: Data) -> Data:
        infos = {key: value for key, value in infos.items() if "final_obs" in key}
        return obs, rewards, term, trunc, infos


class StepsThroughEnd(Broken):
    mode = AutoresetMode.DISABLED

    def step(self, actions: Data) -> Data:
        self.over[:] = False
        return super().step(actions)


class MaskIgnored(Broken):
    def mask(self, options: dict[str, Any] | None) -> Data:
        super().mask(options)
        return np.ones(self.num_envs, np.bool_)


class MaskResetsNothing(Broken):
    def mask(self, options: dict[str, Any] | None) -> Data:
        mask = super().mask(options)
        return mask & bool(mask.all())


class MaskDisturbsOthers(Broken):
    def mask(self, options: dict[str, Any] | None) -> Data:
        mask = super().mask(options)
        for row in np.flatnonzero(~mask):
            self.generators[row].normal()
        return mask


class AnyMask(Broken):
    def mask(self, options: dict[str, Any] | None) -> Data:
        mask = (options or {}).get("reset_mask")
        return np.ones(N, np.bool_) if mask is None else np.asarray(mask, np.bool_)[:N]


class PopsMask(Broken):
    def mask(self, options: dict[str, Any] | None) -> Data:
        mask = super().mask(options)
        (options or {}).pop("reset_mask", None)
        return mask


class ForgetsInCopies(Broken):
    def __getstate__(self) -> dict[str, Any]:
        """All but the position."""
        return {**self.__dict__, "x": np.zeros(self.num_envs)}


class OneFrame(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.metadata["render_modes"] = ["rgb_array"]
        self.render_mode = "rgb_array"

    def render(self) -> Data:
        return np.zeros((8, 8, 3), np.uint8)


class ClosesOnce(Broken):
    def close(self, **kwargs: object) -> None:
        if self.closed:
            raise RuntimeError("already closed")
        super().close(**kwargs)


class NeverClosed(Broken):
    def close(self, **kwargs: object) -> None:
        pass


class StepsWhenClosed(Broken):
    def step(self, actions: Data) -> Data:
        was, self.closed = self.closed, False
        try:
            return super().step(actions)
        finally:
            self.closed = was


FAULTS = [
    ("num-envs", NumEnvsFloat),
    ("spaces", NoSpaces),
    ("batched-spaces", SingleSpaces),
    ("autoreset-metadata", ModeAsString),
    ("autoreset-attribute", OtherMode),
    ("other-attributes", UnknownRenderMode),
    ("step-before-reset", StepsBeforeReset),
    ("reset-returns", OnlyObservation),
    ("reset-returns", DoublePrecision),
    ("reset-returns", InfoWithoutMask),
    ("reset-returns", InfoOfOneRow),
    ("step-returns", FourValues),
    ("step-returns", IntegerRewards),
    ("step-returns", ColumnRewards),
    ("step-returns", ByteFlags),
    ("long-run", OutsideLater),
    ("long-run", NotFiniteLater),
    ("actions-unchanged", ChangesActions),
    ("buffers", ReusedBuffer),
    ("buffers", ReusedFlags),
    ("seed-int", IgnoresSeed),
    ("seed-differs", ConstantSeed),
    ("seed-rows", SameRows),
    ("seed-list", FirstOfList),
    ("seed-list-gaps", RefusesGaps),
    ("seed-list-length", AnyLength),
    ("seed-continues", RepeatsEpisode),
    ("unseeded-differ", FixedStart),
    ("determinism", HiddenCounter),
    ("neighbours", LeaksToNeighbours),
    ("batch-size", KnowsBatchSize),
    ("autoreset-next-step", RewardsResetStep),
    ("autoreset-next-step", NeverStartsAgain),
    ("autoreset-next-step", PlaysResetStep),
    ("autoreset-same-step", LosesFinal),
    ("autoreset-same-step", FinalIsReset),
    ("autoreset-same-step", FinalMaskWrong),
    ("final-info", NoFinalInfo),
    ("autoreset-disabled", StepsThroughEnd),
    ("reset-mask", MaskIgnored),
    ("reset-mask", MaskResetsNothing),
    ("reset-mask", MaskDisturbsOthers),
    ("reset-mask-refused", AnyMask),
    ("options-unchanged", PopsMask),
    ("copies", ForgetsInCopies),
    ("render", OneFrame),
    ("close", ClosesOnce),
    ("close", NeverClosed),
    ("step-after-close", StepsWhenClosed),
]


@pytest.mark.parametrize(("rule", "broken"), FAULTS, ids=[c.__name__ for _, c in FAULTS])
def test_each_fault_is_found(rule: str, broken: type[Broken]) -> None:
    report = check_vector_env(broken, steps=40, strict=True, raise_on_first=False)
    assert rule in report.rules(), str(report)
    with pytest.raises(VectorEnvError) as caught:
        check_vector_env(broken, steps=40, strict=True)
    assert len(caught.value.problems) == 1


def test_every_rule_has_a_broken_environment() -> None:
    assert {rule for rule, _ in FAULTS} == set(rule_names())


def test_a_rule_can_be_left_out() -> None:
    assert list(check_vector_env(PopsMask, strict=True, skip=["options-unchanged"])) == []
