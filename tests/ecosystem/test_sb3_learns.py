"""stable-baselines3 trains on the vector environment, and what it trains gets better."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

from oncall_gym.sb3 import OncallSb3VecEnv, make_sb3

EPISODES = 64
# Row seeds of the evaluation; training draws its own of 64 bits.
EVALUATION_SEEDS = list(range(10_000, 10_000 + EPISODES))
STEPS = 20_000

Returns = npt.NDArray[np.float64]


def returns_of(model: BaseAlgorithm | None) -> Returns:
    """Returns of the evaluation episodes, the same for every model; None keeps all dials."""
    env = make_sb3("oncall/Spike-v0", EPISODES)
    observation, _ = env.env.reset(seed=EVALUATION_SEEDS)
    torch.manual_seed(1)
    while True:
        if model is None:
            actions = np.zeros((EPISODES, len(env.env.world_spec.dials)), np.int64)
        else:
            actions, _ = model.predict(observation, deterministic=False)
        observation, _, dones, infos = env.step(actions)
        if dones.all():
            return np.array([info["episode"]["r"] for info in infos])


def keep_most_dials(model: PPO, env: OncallSb3VecEnv) -> None:
    """Biases an untrained policy to keep dials, as `Spec.initial_logits` says."""
    bias = np.concatenate(env.env.world_spec.initial_logits())
    with torch.no_grad():
        model.policy.action_net.bias.copy_(torch.as_tensor(bias))


def test_ppo_improves_on_its_own_start() -> None:
    env = make_sb3("oncall/Spike-v0", 16, seed=0)
    model = PPO(
        "MlpPolicy",
        VecNormalize(env, norm_obs=False, gamma=0.95),
        n_steps=32,
        batch_size=128,
        n_epochs=6,
        learning_rate=2e-3,
        gamma=0.95,
        seed=0,
        device="cpu",
    )
    keep_most_dials(model, env)
    start = returns_of(model)
    assert np.array_equal(start, returns_of(model))
    model.learn(STEPS)
    assert model.num_timesteps >= STEPS
    end, hold = returns_of(model), returns_of(None)
    gain = end - start
    print(f"start {start.mean():.1f}, after {STEPS} steps {end.mean():.1f}, hold {hold.mean():.1f}")
    # Measured with training seeds 0, 1, 2: start -624, -621, -616; end -72, -101, -69; the gain is
    # 520 to 552 with a standard error of 48, and 98 % of the episodes or more improve.
    assert gain.mean() > 300
    assert (gain > 0).mean() > 0.9
    # Nor is it only the way back to doing nothing: hold has -168 on these episodes.
    assert end.mean() > hold.mean() + 25


def test_training_repeats_to_the_last_bit() -> None:
    def weights() -> list[torch.Tensor]:
        model = PPO(
            "MlpPolicy", make_sb3("oncall/Spike-v0", 4, seed=5), n_steps=64, seed=5, device="cpu"
        )
        model.learn(512)
        return [parameter.detach().clone() for parameter in model.policy.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(weights(), weights(), strict=True))


def test_other_trainers_run_on_the_box_space() -> None:
    for trainer in (SAC, A2C):
        env = make_sb3("oncall/BadBuild-v0", 4, seed=1, action_mode="box", max_minutes=30)
        model = trainer("MlpPolicy", env, seed=1, device="cpu")
        model.learn(600)
        assert model.num_timesteps >= 600
        # Episodes were counted without a Monitor around the environment.
        assert len(model.ep_info_buffer) >= 4 * 4
        assert {info["l"] for info in model.ep_info_buffer} == {30}


def test_evaluate_policy_counts_whole_episodes() -> None:
    env = make_sb3("oncall/Steady-v0", 4, seed=1, max_minutes=10)
    model = PPO("MlpPolicy", env, seed=1, device="cpu")
    rewards, lengths = evaluate_policy(model, env, 8, return_episode_rewards=True)
    assert lengths == [10] * 8
    assert all(reward < 0 for reward in rewards)
