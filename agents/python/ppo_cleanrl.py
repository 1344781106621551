"""PPO in one file, after CleanRL: PyTorch on the vector environment. Copy it and change it.

    python agents/python/ppo_cleanrl.py --scenario spike --steps 2000000 --out out/cleanrl-spike

Hyper-parameters, networks and the treatment of an episode's end are those of `oncall-ppo train`;
three things are simpler here. The floor of the fleet has the stops of the multi-discrete space
instead of every whole number; the critic is not told what was drawn for the episode
(`--plain-critic` there); and there is no checkpoint. `training.csv` has the same columns.

With one seed and one number of threads a training repeats to the last bit.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical

import oncall_gym

# Before training, row i plays 7 i mod 240 minutes with nobody at the dials: else every roll-out
# would hold one phase of the shift.
STAGGER_MIN, STAGGER_ROW_MIN = 240, 7
# A column of the observation that varies less counts as varying by this much.
INPUT_STD_MIN = 0.05
# Seed of the evaluation's episodes, which no training plays.
EVALUATION_SEED = 4242


def arg(default: object, doc: str) -> object:
    """A hyper-parameter with its line of `--help`."""
    return field(default=default, metadata={"doc": doc})


@dataclass
class Args:
    """Everything that the result depends on, and where it goes."""

    scenario: str = arg("spike", "a shipped scenario or a JSON file")
    steps: int = arg(20_000_000, "environment steps, rounded up to whole roll-outs")
    seed: int = arg(1, "seed of everything")
    out: str = arg("", "folder for training.csv and policy.pt; nothing is written without it")
    threads: int = arg(torch.get_num_threads(), "threads of PyTorch and of the environment")
    evaluation_episodes: int = arg(1000, "episodes of the evaluation at the end; 0 for none")
    rows: int = arg(512, "environments that play side by side")
    horizon: int = arg(64, "decisions of each environment between two updates")
    hidden: int = arg(64, "width of the two hidden layers, of the actor and of the critic")
    epochs: int = arg(2, "passes over a roll-out")
    minibatch: int = arg(2048, "samples of one step of the optimiser")
    learning_rate: float = arg(5e-3, "at the start; falls linearly to zero")
    gamma: float = arg(0.99, "how much a step later counts")
    lambda_: float = arg(0.95, "how far advantages trust rewards rather than the critic")
    clip: float = arg(0.2, "how far an update may move a decision's probability")
    entropy_weight: float = arg(1e-2, "of the sum over the dials, at the start; falls to zero")
    value_weight: float = arg(0.5, "weight of the critic's squared error")
    gradient_norm_max: float = arg(0.5, "a longer gradient is shortened to it")
    adam_epsilon: float = arg(1e-5, "added to the optimiser's denominator")
    reward_clip: float = arg(10.0, "largest size of a scaled reward")
    warm_up: int = arg(4, "roll-outs of the untrained policy that standardise the observations")
    bootstrap_end: bool = arg(False, "count the last observation's value at the end of a shift")

    @classmethod
    def parse(cls, argv: list[str] | None = None) -> Args:
        """From the command line."""
        parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
        for item in fields(cls):
            flag, doc = f"--{item.name.strip('_').replace('_', '-')}", item.metadata["doc"]
            if isinstance(item.default, bool):
                parser.add_argument(flag, dest=item.name, action="store_true", help=doc)
            else:
                kind = type(item.default)
                doc = f"{doc} (%(default)s)"
                parser.add_argument(flag, dest=item.name, type=kind, default=item.default, help=doc)
        args = cls(**vars(parser.parse_args(argv)))
        if args.rows * args.horizon % args.minibatch:
            parser.error(f"minibatch = {args.minibatch}: expected a divisor of rows * horizon")
        return args


def layer(inputs: int, outputs: int, gain: float) -> nn.Linear:
    """A fully connected layer that begins orthogonal."""
    linear = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


def trunk(inputs: int, hidden: int, outputs: int, gain: float) -> nn.Sequential:
    """Two hidden layers."""
    root2 = float(np.sqrt(2.0))
    first, second = layer(inputs, hidden, root2), layer(hidden, hidden, root2)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), layer(hidden, outputs, gain))


class Agent(nn.Module):
    """Actor and critic that share nothing, on standardised observations."""

    def __init__(self, env: oncall_gym.OncallVectorEnv, hidden: int) -> None:
        super().__init__()
        self.choices = [int(n) for n in env.single_action_space.nvec]
        inputs = env.single_observation_space.shape[0]
        self.actor = trunk(inputs, hidden, sum(self.choices), 0.01)
        self.critic = trunk(inputs, hidden, 1, 1.0)
        # An untrained policy mostly keeps: a uniform one would turn every dial every minute.
        bias = np.concatenate(env.world_spec.initial_logits())
        with torch.no_grad():
            self.actor[-1].bias.copy_(torch.as_tensor(bias))
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("factor", torch.ones(inputs))

    def standardise(self, observations: Tensor) -> Tensor:
        """Observations as the networks take them."""
        return (observations - self.mean) * self.factor

    def heads(self, inputs: Tensor) -> list[Categorical]:
        """One distribution for each dial."""
        logits = self.actor(inputs).split(self.choices, dim=1)
        return [Categorical(logits=head, validate_args=False) for head in logits]

    def act(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Draws a decision (n, dials); gives its log-probability as well."""
        heads = self.heads(inputs)
        actions = torch.stack([head.sample() for head in heads], dim=1)
        return actions, log_prob(heads, actions)

    def value(self, inputs: Tensor) -> Tensor:
        """The critic's opinion."""
        return self.critic(inputs).squeeze(-1)


def log_prob(heads: list[Categorical], actions: Tensor) -> Tensor:
    """Dials are turned independently, so log-probabilities add up."""
    return sum(head.log_prob(action) for head, action in zip(heads, actions.T, strict=True))


class ReturnScale:
    """Divides rewards by the running spread of the discounted return; the mean stays."""

    def __init__(self, args: Args) -> None:
        self.gamma, self.clip = args.gamma, args.reward_clip
        self.sums = np.zeros(args.rows)
        self.count = self.mean = self.squares = 0.0

    def observe(self, rewards: np.ndarray, ends: np.ndarray) -> None:
        """Takes in a roll-out, (horizon, rows)."""
        returns = np.empty_like(rewards)
        for step, (reward, end) in enumerate(zip(rewards, ends, strict=True)):
            self.sums = self.sums * self.gamma + reward
            returns[step] = self.sums
            self.sums = np.where(end, 0.0, self.sums)
        # Chan, Golub, Le Veque (1983): a batch joins the moments of those before it.
        gap, total = returns.mean() - self.mean, self.count + returns.size
        self.squares += returns.var() * returns.size + gap**2 * self.count * returns.size / total
        self.mean += gap * returns.size / total
        self.count = total

    @property
    def factor(self) -> float:
        """What rewards are multiplied by."""
        std = float(np.sqrt(self.squares / max(self.count, 1.0)))
        return 1.0 if std < 1e-4 else 1.0 / std

    def apply(self, rewards: np.ndarray) -> np.ndarray:
        """Rewards of order one."""
        return np.clip(rewards * self.factor, -self.clip, self.clip).astype(np.float32)


@dataclass
class Rollout:
    """What was seen, done and got; arrays of (horizon, rows, ...)."""

    inputs: Tensor
    actions: Tensor
    log_probs: Tensor
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    #: Of the last decisions: what each row shows now.
    next_inputs: Tensor
    #: Step, row and input of the last observation of each episode that ended.
    finals: list[tuple[int, int, Tensor]]
    returns_usd: list[float]
    environment_s: float


class Player:
    """Plays roll-outs in an environment in same-step mode.

    In this mode a row whose episode ends begins the next one within the same step: the observation
    returned is the new episode's first, and the old one's last is `info["final_obs"]`. No step is
    played for nothing, and every sample is a decision.
    """

    def __init__(self, args: Args) -> None:
        self.args = args
        self.env = make_env(args, args.rows)
        self.seen, _ = self.env.reset(seed=args.seed)
        keep = np.zeros((args.rows, len(self.env.world_spec.dials)), np.int64)
        begins = STAGGER_ROW_MIN * np.arange(args.rows) % STAGGER_MIN
        for minute in reversed(range(STAGGER_MIN)):
            self.seen = self.env.step(keep)[0]
            if (begins == minute).any():
                self.seen, _ = self.env.reset(options={"reset_mask": begins == minute})

    @torch.no_grad()
    def play(self, agent: Agent) -> Rollout:
        """One roll-out."""
        inputs, actions, log_probs, rewards, terminated, truncated = [], [], [], [], [], []
        finals, returns_usd, environment_s = [], [], 0.0
        for step in range(self.args.horizon):
            inputs.append(agent.standardise(torch.from_numpy(self.seen)))
            action, probability = agent.act(inputs[-1])
            began = time.perf_counter()
            self.seen, reward, died, cut, infos = self.env.step(action.numpy())
            environment_s += time.perf_counter() - began
            for values, value in [
                (actions, action),
                (log_probs, probability),
                (rewards, reward),
                (terminated, died),
                (truncated, cut),
            ]:
                values.append(value)
            if "final_obs" in infos:
                ended = np.flatnonzero(infos["_final_obs"])
                last = agent.standardise(torch.from_numpy(infos["final_obs"]))
                finals += [(step, int(row), last[row]) for row in ended]
                returns_usd += infos["final_info"]["oncall"]["return_usd"][ended].tolist()
        return Rollout(
            torch.stack(inputs),
            torch.stack(actions),
            torch.stack(log_probs),
            np.stack(rewards),
            np.stack(terminated),
            np.stack(truncated),
            agent.standardise(torch.from_numpy(self.seen)),
            finals,
            returns_usd,
            environment_s,
        )


def make_env(args: Args, rows: int) -> oncall_gym.OncallVectorEnv:
    """Many shifts of the scenario's training episodes."""
    return oncall_gym.OncallVectorEnv(
        args.scenario, rows, autoreset_mode="same_step", threads=args.threads
    )


@torch.no_grad()
def judge(
    args: Args, agent: Agent, rollout: Rollout, rewards: np.ndarray
) -> tuple[Tensor, Tensor, Tensor]:
    """Advantages (Schulman et al. 2016), returns and values, each (horizon, rows).

    Advantages never reach over an episode's end. What comes after the end is worth nothing if the
    episode terminated; if it was cut, it is worth what the critic says of its last observation. But
    a shift is over when it is over, the score counts nothing beyond, and the observation says how
    much is left, so the cut counts as a termination too unless `bootstrap_end` is set.
    """
    values = agent.value(rollout.inputs)
    next_values = torch.cat([values[1:], agent.value(rollout.next_inputs)[None]])
    worth_more = ~rollout.terminated & (args.bootstrap_end | ~rollout.truncated)
    if args.bootstrap_end and rollout.finals:
        steps, rows, last = zip(*rollout.finals, strict=True)
        next_values[list(steps), list(rows)] = agent.value(torch.stack(last))
    next_values *= torch.from_numpy(worth_more)
    goes_on = torch.from_numpy(~(rollout.terminated | rollout.truncated)).float()
    errors = torch.from_numpy(rewards) + args.gamma * next_values - values
    advantages, running = torch.zeros_like(values), torch.zeros(args.rows)
    for step in reversed(range(args.horizon)):
        running = errors[step] + args.gamma * args.lambda_ * goes_on[step] * running
        advantages[step] = running
    return advantages, advantages + values, values


def update(
    args: Args,
    agent: Agent,
    optimiser: torch.optim.Adam,
    rollout: Rollout,
    lesson: tuple[Tensor, Tensor],
    entropy_weight: float,
) -> dict[str, np.ndarray]:
    """Changes the networks by all minibatches; gives means over them for the log."""
    inputs, actions = rollout.inputs.flatten(0, 1), rollout.actions.flatten(0, 1)
    old, advantages, returns = rollout.log_probs.flatten(), lesson[0].flatten(), lesson[1].flatten()
    stats: list[dict[str, Tensor]] = []
    for _ in range(args.epochs):
        for index in torch.randperm(len(inputs)).split(args.minibatch):
            heads = agent.heads(inputs[index])
            log_ratio = log_prob(heads, actions[index]) - old[index]
            ratio = log_ratio.exp()
            advantage = advantages[index]
            spread = advantage.std(correction=0) + 1e-8
            advantage = (advantage - advantage.mean()) / spread
            clipped = ratio.clamp(1.0 - args.clip, 1.0 + args.clip)
            policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
            value_loss = (agent.value(inputs[index]) - returns[index]).square().mean()
            entropies = torch.stack([head.entropy().mean() for head in heads])
            loss = policy_loss + 0.5 * args.value_weight * value_loss
            loss = loss - entropy_weight * entropies.sum()
            optimiser.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(agent.parameters(), args.gradient_norm_max)
            optimiser.step()
            with torch.no_grad():
                stats.append(
                    {
                        "entropies": entropies,
                        "kl": (ratio - 1.0 - log_ratio).mean(),
                        "clip_fraction": ((ratio - 1.0).abs() > args.clip).float().mean(),
                        "policy_loss": policy_loss,
                        "value_loss": value_loss,
                        "gradient_norm": norm,
                    }
                )
    mean = {name: torch.stack([s[name].detach() for s in stats]).mean(dim=0) for name in stats[0]}
    return {name: value.numpy() for name, value in mean.items()}


def train(args: Args) -> Iterator[tuple[Agent, dict[str, float]]]:
    """Trains, and gives the agent and a line of the log after every update."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    player = Player(args)
    dials = player.env.world_spec.dial_names
    agent = Agent(player.env, args.hidden)
    optimiser = torch.optim.Adam(agent.parameters(), eps=args.adam_epsilon)
    scale = ReturnScale(args)
    if args.warm_up:
        shown = torch.cat([player.play(agent).inputs.flatten(0, 1) for _ in range(args.warm_up)])
        agent.mean.copy_(shown.mean(dim=0))
        agent.factor.copy_(1.0 / shown.std(dim=0, correction=0).clamp(min=INPUT_STD_MIN))
    samples = args.rows * args.horizon
    updates, seconds = -(-args.steps // samples), 0.0
    for number in range(updates):
        began = time.perf_counter()
        rollout = player.play(agent)
        played = time.perf_counter() - began
        left = 1.0 - number / updates
        optimiser.param_groups[0]["lr"] = args.learning_rate * left
        scale.observe(rollout.rewards, rollout.terminated | rollout.truncated)
        advantages, returns, values = judge(args, agent, rollout, scale.apply(rollout.rewards))
        entropy_weight = args.entropy_weight * left
        stats = update(args, agent, optimiser, rollout, (advantages, returns), entropy_weight)
        spent = time.perf_counter() - began
        seconds += spent
        entropies, norm = stats.pop("entropies"), stats.pop("gradient_norm")
        line = {
            "update": number + 1,
            "steps": (args.warm_up + number + 1) * samples,
            "seconds": seconds,
            "steps_per_s": samples / spent,
            "episodes": len(rollout.returns_usd),
            "return_usd": float(np.mean(rollout.returns_usd)) if rollout.returns_usd else np.nan,
            "entropy": float(entropies.sum()),
            **{name: float(value) for name, value in stats.items()},
            "explained_variance": float(1.0 - (returns - values).var() / returns.var()),
            "gradient_norm": float(norm),
            "learning_rate": args.learning_rate * left,
            "reward_scale": scale.factor,
            "rollout_s": played,
            "update_s": spent - played,
            # Its constants are with `oncall eval`.
            "score": np.nan,
            "environment_s": rollout.environment_s,
            "forward_s": played - rollout.environment_s,
        }
        line |= {f"entropy_{dial}": float(x) for dial, x in zip(dials, entropies, strict=True)}
        yield agent, line


@torch.no_grad()
def evaluate(args: Args, agent: Agent) -> np.ndarray:
    """Returns of training episodes that were not trained on, dollars."""
    env = make_env(args, args.evaluation_episodes)
    seen, _ = env.reset(seed=EVALUATION_SEED)
    returns = np.full(args.evaluation_episodes, np.nan)
    while np.isnan(returns).any():
        actions, _ = agent.act(agent.standardise(torch.from_numpy(seen)))
        seen, _, _, _, infos = env.step(actions.numpy())
        if "final_obs" in infos:
            # Shifts of a mixture differ in length: the first one of each row counts.
            found = infos["final_info"]["oncall"]["return_usd"]
            returns = np.where(infos["_final_obs"] & np.isnan(returns), found, returns)
    return returns


def main() -> None:
    """Trains, logs and evaluates."""
    args = Args.parse()
    folder = Path(args.out) if args.out else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    log = (folder / "training.csv").open("w", newline="") if folder else None
    writer: csv.DictWriter[str] | None = None
    agent = None
    for agent, line in train(args):  # noqa: B007
        if log:
            if writer is None:
                writer = csv.DictWriter(log, line)
                writer.writeheader()
            writer.writerow(line)
            log.flush()
        print(
            f"{line['steps']:>10,} steps {line['steps_per_s']:>8,.0f}/s  "
            f"return {line['return_usd']:>8.2f} usd  entropy {line['entropy']:.2f}  "
            f"kl {line['kl']:.4f}  explained {line['explained_variance']:.2f}",
            flush=True,
        )
    if agent and folder:
        torch.save(agent.state_dict(), folder / "policy.pt")
    if agent and args.evaluation_episodes:
        found = evaluate(args, agent)
        error = found.std() / np.sqrt(len(found))
        print(f"return {found.mean():.2f} +- {error:.2f} usd ({len(found)} training episodes)")


if __name__ == "__main__":
    main()
