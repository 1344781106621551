"""The trainers of agents/python: they learn, repeat, and are what their counterpart in Rust is."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields
from pathlib import Path

import compare
import numpy as np
import ppo_cleanrl
import ppo_sb3
import pytest
import torch
from ppo_cleanrl import Agent, Args, Rollout

ROOT = Path(__file__).resolve().parents[2]

SMALL = Args(
    steps=20_480,
    rows=64,
    horizon=32,
    minibatch=256,
    epochs=4,
    learning_rate=2e-3,
    gamma=0.95,
    threads=1,
    evaluation_episodes=64,
    seed=0,
)


def trained(args: Args) -> tuple[Agent, list[dict[str, float]]]:
    lines, agent = [], None
    for agent, line in ppo_cleanrl.train(args):  # noqa: B007
        lines.append(line)
    assert agent is not None
    return agent, lines


def test_one_file_improves_on_its_start() -> None:
    agent, lines = trained(SMALL)
    assert [line["update"] for line in lines] == list(range(1, 11))
    assert lines[-1]["steps"] == 20_480 + SMALL.warm_up * 64 * 32
    env = ppo_cleanrl.make_env(SMALL, 1)
    torch.manual_seed(SMALL.seed)
    torch.manual_seed(1)
    start = ppo_cleanrl.evaluate(SMALL, Agent(env, SMALL.hidden))
    torch.manual_seed(1)
    end = ppo_cleanrl.evaluate(SMALL, agent)
    gain = end - start
    print(f"start {start.mean():.1f}, after {SMALL.steps} steps {end.mean():.1f}")
    assert gain.mean() > 200
    assert (gain > 0).mean() > 0.8
    first = next(line["return_usd"] for line in lines if line["episodes"])
    assert lines[-1]["return_usd"] > first + 100


def test_one_file_repeats_to_the_last_bit() -> None:
    args = Args(**{**vars(SMALL), "steps": 3 * 64 * 32})
    one, two = (trained(args)[0].state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)
    other = trained(Args(**{**vars(args), "seed": 1}))[0].state_dict()
    assert not torch.equal(one["actor.0.weight"], other["actor.0.weight"])


def test_stable_baselines3_improves_on_its_start() -> None:
    model = ppo_sb3.make_model(SMALL)
    start = ppo_sb3.evaluate(SMALL, model)
    model.learn(SMALL.steps, callback=ppo_sb3.Progress(SMALL, None))
    end = ppo_sb3.evaluate(SMALL, model)
    print(f"start {start.mean():.1f}, after {SMALL.steps} steps {end.mean():.1f}")
    assert (end - start).mean() > 200
    # Both networks are those of the other trainers.
    shapes = [tuple(p.shape) for p in model.policy.parameters()]
    agent = Agent(ppo_cleanrl.make_env(SMALL, 1), SMALL.hidden)
    assert sorted(shapes) == sorted(tuple(p.shape) for p in agent.parameters())


class Critic:
    """Says the first column of what it is shown."""

    def value(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs[..., 0]


@pytest.mark.parametrize("bootstrap_end", [False, True])
def test_advantages_end_with_the_episode(bootstrap_end: bool) -> None:
    """By hand: gamma 0.5, lambda 0.5; values 1, 2, 3, then 4. Row 0 goes on, row 1 is cut after its
    second step with a last observation worth 10, row 2 terminates there."""
    args = Args(rows=3, horizon=3, gamma=0.5, lambda_=0.5, bootstrap_end=bootstrap_end)
    values = torch.tensor([1.0, 2.0, 3.0])[:, None, None].expand(3, 3, 1).clone()
    ends = np.zeros((2, 3, 3), bool)
    ends[0, 1, 2] = ends[1, 1, 1] = True
    nothing = torch.zeros(3, 3)
    rollout = Rollout(
        values,
        nothing,
        nothing,
        np.zeros((3, 3)),
        ends[0],
        ends[1],
        torch.full((3, 1), 4.0),
        [(1, 1, torch.tensor([10.0])), (1, 2, torch.tensor([20.0]))],
        [],
        0.0,
    )
    rewards = np.full((3, 3), 1.0, np.float32)
    advantages, returns, _ = ppo_cleanrl.judge(args, Critic(), rollout, rewards)
    # Errors: 1 + 2/2 - 1 = 1; 1 + 3/2 - 2 = 0.5; 1 + 4/2 - 3 = 0.
    goes_on = [1 + 0.25 * 0.5, 0.5, 0.0]
    # At the end 1 - 2 = -1; with the last observation 1 + 10/2 - 2 = 4.
    last = 4.0 if bootstrap_end else -1.0
    cut, terminated = [1 + 0.25 * last, last, 0.0], [1 - 0.25, -1.0, 0.0]
    known = torch.tensor([goes_on, cut, terminated]).T
    assert torch.allclose(advantages, known)
    assert torch.allclose(returns, known + values[..., 0])


def test_reward_scale_follows_the_discounted_return() -> None:
    """The case of `agents/rollout`: returns of row 0 are 2, 5 (end), 6; of row 1 are 0, 0, 8."""
    scale = ppo_cleanrl.ReturnScale(Args(rows=2, gamma=0.5))
    rewards = np.array([[2.0, 0.0], [4.0, 0.0], [6.0, 8.0]])
    ends = np.array([[False, False], [True, False], [False, False]])
    scale.observe(rewards[:1], ends[:1])
    scale.observe(rewards[1:], ends[1:])
    assert scale.sums.tolist() == [6.0, 8.0]
    assert scale.factor == pytest.approx(1.0 / np.sqrt(55.5 / 6.0))


def test_defaults_are_those_of_oncall_ppo() -> None:
    text = (ROOT / "agents/ppo/src/config.rs").read_text(encoding="utf-8")
    pattern = r"#\[arg\(long, default_value_t = ([^)]+)\)\]\s+pub (\w+): (?:usize|u64|f64),"
    rust = {name: float(value) for value, name in re.findall(pattern, text)}
    own = {item.name.strip("_"): item.default for item in fields(Args)}
    # Parts of a minibatch on threads, and learning from a rule, are the Rust trainer's alone.
    alone = {"shards", "teacher_updates", "teacher_learning_rate"}
    shared = {name: value for name, value in rust.items() if name in own}
    assert len(shared) >= 14
    assert shared == {name: own[name] for name in shared}
    assert set(rust) - set(own) <= alone | {name for name in rust if name.startswith("teacher")}


def test_columns_are_those_of_oncall_ppo() -> None:
    text = (ROOT / "agents/ppo/src/log.rs").read_text(encoding="utf-8")
    block = text[text.index("\nline! {") : text.index("\n}\n", text.index("\nline! {"))]
    rust = re.findall(r"^    (\w+),$", block, re.MULTILINE)
    assert len(rust) >= 20
    args = Args(**{**vars(SMALL), "steps": 1})
    _, lines = trained(args)
    assert list(lines[0])[: len(rust)] == rust
    assert all(name.startswith("entropy_") for name in list(lines[0])[len(rust) :])


def test_comparison_takes_ratios_within_rounds() -> None:
    """By hand: in the second round everything was ten times slower."""
    own = compare.Speeds([100.0, 10.0, 90.0], [50.0, 60.0, 40.0])
    other = compare.Speeds([50.0, 4.0, 45.0], [5.0, 6.0, 4.0])
    found = {4: dict(zip(compare.NAMES, [own, other, other], strict=True))}
    options = argparse.Namespace(
        scenario="spike", rows=512, horizon=64, minibatch=2048, hidden=64, threads=2, rounds=3
    )
    lines = compare.table(options, found).splitlines()
    assert lines[2].split() == ["4", "oncall-ppo", "90", "1.0", "50", "1.0"]
    assert lines[3].split() == ["4", "one", "file", "45", "2.0", "5", "10.0"]


def test_pins_agree() -> None:
    def pins(path: str) -> set[str]:
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        return {line for line in lines if "==" in line and not line.startswith("#")}

    own = pins("agents/python/requirements.txt")
    assert len(own) == 4
    assert own <= pins("tests/ecosystem/requirements.txt")
