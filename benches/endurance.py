"""Does memory stay flat over a hundred million steps?

    python benches/endurance.py [--steps 100000000] [--batch 1024] [--threads 1]

Plays random actions with reused buffers and automatic resets, and reads the resident set of the
process every tenth of the way, the first time after a warm-up of one hundredth. Ends with an error
if it grew by more than 1 MiB from then on.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from oncall_gym import OncallVectorEnv

#: Sets of actions that are played in turn.
PREPARED = 16
#: Growth that is taken for noise of the allocator, bytes.
SLACK = 1 << 20


def resident_bytes() -> int:
    """Resident set of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Plays, prints, judges."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--scenario", default="mixed-hard")
    parser.add_argument("--steps", type=int, default=100_000_000)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    env = OncallVectorEnv(args.scenario, args.batch, copy=False, threads=args.threads)
    env.reset(seed=1)
    stops = env.single_action_space.nvec
    rng = np.random.default_rng(0)
    shape = (args.batch, len(stops))
    actions = [rng.integers(0, stops, shape) * (rng.random(shape) < 0.125) for _ in range(PREPARED)]
    calls = -(-args.steps // args.batch)
    marks = {max(calls // 100, 1)} | {calls * tenth // 10 for tenth in range(1, 11)}
    start, first, last = time.perf_counter(), 0, 0
    for call in range(1, calls + 1):
        env.step(actions[call % PREPARED])
        if call in marks:
            last = resident_bytes()
            first = first or last
            played = call * args.batch / 1e6
            spent = time.perf_counter() - start
            print(f"{played:8.1f} M steps {last / 2**20:8.2f} MiB {played / spent:6.2f} M steps/s")
    print(f"grew by {(last - first) / 1024:.0f} KiB")
    if last - first > SLACK:
        sys.exit(1)


if __name__ == "__main__":
    main()
