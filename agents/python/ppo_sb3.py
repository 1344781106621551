"""stable-baselines3's PPO on the vector environment, with the hyper-parameters of `oncall-ppo`.

    python agents/python/ppo_sb3.py --scenario spike --steps 2000000 --out out/sb3-spike

What stable-baselines3 does otherwise: observations are standardised by a running mean and spread,
the end of a shift counts as a cut (`--bootstrap-end` of the other trainers), and its `vf_coef` has
no factor of a half in it. `training.csv` has the first columns of `oncall-ppo`'s.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from ppo_cleanrl import EVALUATION_SEED, Args
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from oncall_gym.sb3 import make_sb3

COLUMNS = ("update", "steps", "seconds", "steps_per_s", "episodes", "return_usd")


class Progress(BaseCallback):
    """Lets the entropy bonus fall, and writes a line after every update."""

    def __init__(self, args: Args, log: TextIO | None) -> None:
        super().__init__()
        self.args, self.began, self.done = args, time.perf_counter(), 0
        self.start, self.returns_usd = self.began, []
        self.writer = csv.writer(log) if log else None
        self.log = log
        if self.writer:
            self.writer.writerow(COLUMNS)

    def _on_step(self) -> bool:
        infos: list[dict[str, Any]] = self.locals["infos"]
        self.returns_usd += [info["episode"]["r"] for info in infos if "episode" in info]
        return True

    def _on_rollout_start(self) -> None:
        """After an update, except at the very start."""
        self.model.ent_coef = self.args.entropy_weight * self.model._current_progress_remaining
        if self.num_timesteps > self.done:
            self.line()

    def _on_training_end(self) -> None:
        self.line()

    def line(self) -> None:
        """What the update came to."""
        now = time.perf_counter()
        rate = (self.num_timesteps - self.done) / (now - self.began)
        update = self.num_timesteps // (self.args.rows * self.args.horizon)
        mean = float(np.mean(self.returns_usd)) if self.returns_usd else np.nan
        if self.writer and self.log:
            seconds = now - self.start
            row = (update, self.num_timesteps, seconds, rate, len(self.returns_usd), mean)
            self.writer.writerow(row)
            self.log.flush()
        steps = self.num_timesteps
        print(f"{steps:>10,} steps {rate:>8,.0f}/s  return {mean:>8.2f} usd", flush=True)
        self.began, self.done, self.returns_usd = now, steps, []


def make_model(args: Args) -> PPO:
    """The trainer, before its first step."""
    torch.set_num_threads(args.threads)
    env = make_sb3(args.scenario, args.rows, seed=args.seed, threads=args.threads)
    model = PPO(
        "MlpPolicy",
        VecNormalize(env, gamma=args.gamma, clip_reward=args.reward_clip),
        n_steps=args.horizon,
        batch_size=args.minibatch,
        n_epochs=args.epochs,
        learning_rate=lambda left: args.learning_rate * left,
        gamma=args.gamma,
        gae_lambda=args.lambda_,
        clip_range=args.clip,
        ent_coef=args.entropy_weight,
        vf_coef=0.5 * args.value_weight,
        max_grad_norm=args.gradient_norm_max,
        policy_kwargs={
            "net_arch": {"pi": [args.hidden] * 2, "vf": [args.hidden] * 2},
            "activation_fn": torch.nn.Tanh,
            "optimizer_kwargs": {"eps": args.adam_epsilon},
        },
        seed=args.seed,
        device="cpu",
    )
    # An untrained policy mostly keeps: a uniform one would turn every dial every minute.
    bias = np.concatenate(env.env.world_spec.initial_logits())
    with torch.no_grad():
        model.policy.action_net.bias.copy_(torch.as_tensor(bias))
    return model


def evaluate(args: Args, model: PPO) -> np.ndarray:
    """Returns of training episodes that were not trained on, dollars."""
    env = make_sb3(args.scenario, args.evaluation_episodes, seed=EVALUATION_SEED)
    normal = model.get_vec_normalize_env()
    returns = np.full(args.evaluation_episodes, np.nan)
    seen = env.reset()
    while np.isnan(returns).any():
        actions, _ = model.predict(normal.normalize_obs(seen), deterministic=False)
        seen, _, _, infos = env.step(actions)
        for row, info in enumerate(infos):
            if "episode" in info and np.isnan(returns[row]):
                returns[row] = info["episode"]["r"]
    return returns


def main() -> None:
    """Trains, logs and evaluates."""
    args = Args.parse()
    folder = Path(args.out) if args.out else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    log = (folder / "training.csv").open("w", newline="") if folder else None
    model = make_model(args)
    model.learn(args.steps, callback=Progress(args, log))
    if folder:
        model.save(folder / "policy.zip")
    if args.evaluation_episodes:
        found = evaluate(args, model)
        error = found.std() / np.sqrt(len(found))
        print(f"return {found.mean():.2f} +- {error:.2f} usd ({len(found)} training episodes)")


if __name__ == "__main__":
    main()
