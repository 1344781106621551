"""What `send` and `recv` save: the world plays while the learner works.

    python benches/overlap.py [--batch 8192] [--rounds 7]

A learner that computes for as long as a step of the world takes is played three ways, in turns:
the world alone, `step` and then the learner, and `send`, the learner, `recv`. The learner of the
first table waits (one that computes on another device does that), that of the second multiplies
matrices on this one, which needs a second processor to overlap. 1.0 would be perfect: the longer
of the two is all that is paid.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from oncall_gym import OncallVectorEnv

#: Iterations of a turn.
TURN = 20


def spent(work: Callable[[], object]) -> float:
    """Milliseconds of an iteration."""
    start = time.perf_counter()
    for _ in range(TURN):
        work()
    return (time.perf_counter() - start) * 1e3 / TURN


def compare(env: OncallVectorEnv, action: np.ndarray, learn: Callable[[], object]) -> list[float]:
    """Milliseconds of an iteration: world, learner, one after the other, and at once."""

    def in_turn() -> None:
        env.step(action)
        learn()

    def at_once() -> None:
        env.send(action)
        learn()
        env.recv()

    return [spent(lambda: env.step(action)), spent(learn), spent(in_turn), spent(at_once)]


def main() -> None:
    """Measures and prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    env = OncallVectorEnv("spike", args.batch, copy=False)
    env.reset(seed=1)
    action = np.zeros((args.batch, len(env.single_action_space.nvec)), dtype=np.int64)
    one = spent(lambda: env.step(action)) / 1e3
    matrix = np.random.default_rng(0).random((192, 192), dtype=np.float32)

    def multiply() -> None:
        end = time.perf_counter() + one
        while time.perf_counter() < end:
            matrix @ matrix

    for name, learn in (("waits", lambda: time.sleep(one)), ("multiplies", multiply)):
        rounds = [compare(env, action, learn) for _ in range(args.rounds)]
        world, alone, turn, once = (
            statistics.median(column) for column in zip(*rounds, strict=True)
        )
        print(
            f"learner {name}: world {world:.2f} ms, learner {alone:.2f} ms, one after the other "
            f"{turn:.2f} ms, at once {once:.2f} ms ({once / max(world, alone):.2f} of the longer)"
        )


if __name__ == "__main__":
    main()
