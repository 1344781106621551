"""Steps per second through Python: the vector environment, actions made beforehand.

    python benches/python_throughput.py

One dial in eight is turned, as by a policy that has begun to learn. All cases are run in turn, five
times around; the median, lowest and highest of each are printed. Compare rows of one run: the speed
of a shared machine moves by a factor of two within minutes.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from oncall_gym import OncallVectorEnv

CASES = [
    (rows, copy, threads)
    for rows in (1, 64, 1024, 8192)
    for copy, threads in ((False, 1), (True, 1), (False, 2))
]
ROUNDS = 5
SECONDS = 0.5


def minutes_per_s(rows: int, copy: bool, threads: int) -> float:
    """Fleet minutes a second of one case."""
    env = OncallVectorEnv("spike", rows, copy=copy, threads=threads, autoreset_mode="same_step")
    rng = np.random.default_rng(0)
    stops = env.single_action_space.nvec
    shape = (rows, len(stops))
    actions = [rng.integers(0, stops, shape) * (rng.random(shape) < 0.125) for _ in range(16)]
    env.reset(seed=1)
    steps, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < SECONDS:
        for action in actions:
            env.step(action)
        steps += len(actions)
    return steps * rows / passed


def main() -> None:
    """Runs all cases in turn and prints a table."""
    results: dict[tuple[int, bool, int], list[float]] = {case: [] for case in CASES}
    for _ in range(ROUNDS):
        for case, found in results.items():
            found.append(minutes_per_s(*case))
    print(
        f"{'rows':>6} {'copy':>6} {'threads':>8} {'M minutes/s':>12} {'lowest':>8} {'highest':>8}"
    )
    for (rows, copy, threads), found in results.items():
        middle, low, high = (x / 1e6 for x in (statistics.median(found), min(found), max(found)))
        print(f"{rows:>6} {copy!s:>6} {threads:>8} {middle:>12.2f} {low:>8.2f} {high:>8.2f}")


if __name__ == "__main__":
    main()
