"""Steps per second of one PPO on this environment and on others, in one interleaved run.

    python benches/peers/ppo.py [--rows 1024] [--horizon 32] [--epochs 1] [--only oncall]

The learner is the same everywhere: actor and critic of 64-64 tanh in PyTorch, generalised
advantages, clipped ratio, minibatches of 2,048, Adam. What differs is the world. A round plays and
learns from one roll-out of every engine in turn, in this process on one thread; the median counts.
"world" is the share of the time inside `step`: what is left to gain from a faster world. The
others play CartPole-v1 (4 numbers seen, 2 actions); this one plays a fleet minute (46 numbers
seen, 8 dials). What is not installed is skipped and said so.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

MINIBATCH = 2048
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2


def oncall(rows: int) -> Any:
    """This environment."""
    from oncall_gym import OncallVectorEnv

    return OncallVectorEnv("spike", rows, autoreset_mode="same_step")


def gymnasium_numpy(rows: int) -> Any:
    """Gymnasium's own vectorised CartPole, in numpy."""
    import gymnasium

    return gymnasium.make_vec("CartPole-v1", num_envs=rows, vectorization_mode="vector_entry_point")


def gymnasium_sync(rows: int) -> Any:
    """Gymnasium's loop over environments."""
    import gymnasium

    return gymnasium.make_vec("CartPole-v1", num_envs=rows, vectorization_mode="sync")


def envpool_sync(rows: int) -> Any:
    """EnvPool on one thread."""
    import envpool

    return envpool.make("CartPole-v1", env_type="gymnasium", num_envs=rows, num_threads=1, seed=1)


ENGINES = {
    "oncall": ("oncall_gym", oncall),
    "gymnasium numpy": ("gymnasium", gymnasium_numpy),
    "gymnasium sync": ("gymnasium", gymnasium_sync),
    "envpool": ("envpool", envpool_sync),
}


def network(width: int, outputs: int) -> nn.Sequential:
    """Two hidden layers of 64."""
    layers = [nn.Linear(width, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)]
    return nn.Sequential(*layers)


@dataclass
class Learner:
    """PPO on one vector environment, a roll-out at a time."""

    env: Any
    rows: int
    horizon: int
    epochs: int
    rates: list[float] = field(default_factory=list)
    world: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        space = getattr(self.env, "single_action_space", None) or self.env.action_space
        nvec = getattr(space, "nvec", None)
        self.choices = [int(space.n)] if nvec is None else [int(n) for n in nvec]
        self.obs = torch.as_tensor(np.array(self.env.reset()[0], dtype=np.float32))
        width = self.obs.shape[1]
        self.actor, self.critic = network(width, sum(self.choices)), network(width, 1)
        parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimiser = torch.optim.Adam(parameters, lr=3e-4)

    def log_probs(self, obs: torch.Tensor) -> list[torch.Tensor]:
        """Log-probabilities of each part of the action."""
        return [part.log_softmax(-1) for part in self.actor(obs).split(self.choices, -1)]

    def chosen(self, parts: list[torch.Tensor], action: torch.Tensor) -> torch.Tensor:
        """Log-probability of an action."""
        picked = [part.gather(1, action[:, [k]]) for k, part in enumerate(parts)]
        return torch.cat(picked, 1).sum(1)

    def play(self) -> tuple[tuple[torch.Tensor, ...], float]:
        """A roll-out as flat columns, and the seconds inside the world."""
        kept: list[tuple[torch.Tensor, ...]] = []
        inside = 0.0
        with torch.no_grad():
            for _ in range(self.horizon):
                parts = self.log_probs(self.obs)
                draws = [torch.multinomial(part.exp(), 1) for part in parts]
                action = torch.cat(draws, 1)
                said = action.numpy() if len(self.choices) > 1 else action[:, 0].numpy()
                began = time.perf_counter()
                seen, reward, terminated, truncated, _ = self.env.step(said)
                inside += time.perf_counter() - began
                over = torch.as_tensor(np.logical_or(terminated, truncated), dtype=torch.float32)
                gained = torch.as_tensor(np.array(reward, dtype=np.float32))
                value = self.critic(self.obs)[:, 0]
                kept.append((self.obs, action, self.chosen(parts, action), value, gained, over))
                self.obs = torch.as_tensor(np.array(seen, dtype=np.float32))
            after = self.critic(self.obs)[:, 0]
        obs, action, log_prob, value, reward, over = (
            torch.stack(c) for c in zip(*kept, strict=True)
        )
        advantage, running = torch.zeros_like(value), torch.zeros(self.rows)
        for t in reversed(range(self.horizon)):
            delta = reward[t] + GAMMA * after * (1 - over[t]) - value[t]
            running = delta + GAMMA * LAMBDA * (1 - over[t]) * running
            advantage[t], after = running, value[t]
        columns = (obs, action, log_prob, advantage, advantage + value)
        return tuple(column.flatten(0, 1) for column in columns), inside

    def learn(self, columns: tuple[torch.Tensor, ...]) -> None:
        """Some epochs over a roll-out."""
        for _ in range(self.epochs):
            for some in torch.randperm(len(columns[0])).split(MINIBATCH):
                obs, action, old, advantage, target = (column[some] for column in columns)
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                parts = self.log_probs(obs)
                ratio = (self.chosen(parts, action) - old).exp()
                clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
                policy = -torch.min(ratio * advantage, clipped * advantage).mean()
                entropy = -sum((part.exp() * part).sum(1).mean() for part in parts)
                value = (self.critic(obs)[:, 0] - target).square().mean()
                self.optimiser.zero_grad()
                (policy + 0.5 * value - 0.01 * entropy).backward()
                self.optimiser.step()

    def round(self) -> None:
        """Plays and learns once, and notes the rate."""
        began = time.perf_counter()
        columns, inside = self.play()
        self.learn(columns)
        spent = time.perf_counter() - began
        self.rates.append(self.rows * self.horizon / spent)
        self.world.append(inside / spent)


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--horizon", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="beginnings of names, with commas")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    only = tuple(part for part in args.only.split(",") if part)
    learners = {}
    for name, (package, make) in ENGINES.items():
        if only and not name.startswith(only):
            continue
        if importlib.util.find_spec(package) is None:
            print(f"{name}: {package} is not installed, skipped")
            continue
        learners[name] = Learner(make(args.rows), args.rows, args.horizon, args.epochs)
        learners[name].round()
    for _ in range(args.rounds):
        for learner in learners.values():
            learner.round()
    base = None
    print(f"{'engine':<18} {'steps/s':>9} {'lowest':>9} {'highest':>9} {'world':>6} {'ratio':>6}")
    for name, learner in learners.items():
        rates = learner.rates[1:]
        rate, inside = statistics.median(rates), statistics.median(learner.world[1:])
        base = base or rate
        row = f"{name:<18} {rate:>9,.0f} {min(rates):>9,.0f} {max(rates):>9,.0f}"
        print(f"{row} {inside:>6.0%} {rate / base:>6.2f}")


if __name__ == "__main__":
    main()
