"""Steps per second of this environment beside others, in one interleaved run.

    python benches/peers/throughput.py [--batches 1,1024,8192] [--rounds 7] [--only oncall,envpool]
    make bench-cartpole

Every engine lives in a process of its own, pinned to one CPU (or two, where it has two threads).
They take turns, a fifth of a second each, round after round, so that whatever else the machine does
meets all of them; the median is the figure. Calls are timed sixteen at a time, so that a step in
which an episode ends counts as often as it comes; sixteen that took more than three times the
median of their turn are left out: in these the machine did something else. "x2" is two such
processes at the same time, their rates added. What is not installed is skipped and said so.

The others play CartPole-v1 (4 numbers seen, a few dozen operations a step); this one plays a fleet
minute (46 numbers seen, an Erlang C, two normal numbers), and "cartpole" is CartPole-v1 through the
same engine and boundary, in builds that have it (`make bench-cartpole`). Actions are random and
made beforehand. Compare the rows of one run only. `benches/README.md` says how PufferLib's
environment is built; the variable PUFFERLIB names the folder of its package, if it is not
installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Seconds of a turn.
TURN = 0.2
#: Sets of actions that are played in turn.
PREPARED = 16

Step = Callable[[Any], Any]

if "PUFFERLIB" in os.environ:
    sys.path.append(os.environ["PUFFERLIB"])


def oncall(batch: int, **keywords: Any) -> tuple[Step, list[Any]]:
    """This environment, one dial in eight turned, as by a policy that has begun to learn."""
    from oncall_gym import OncallVectorEnv

    env = OncallVectorEnv("spike", batch, autoreset_mode="same_step", **keywords)
    env.reset(seed=1)
    stops = env.single_action_space.nvec
    rng = np.random.default_rng(0)
    shape = (batch, len(stops))
    actions = [rng.integers(0, stops, shape) * (rng.random(shape) < 0.125) for _ in range(PREPARED)]
    return env.step, actions


def oncall_cartpole(batch: int, **keywords: Any) -> tuple[Step, list[Any]]:
    """CartPole through this engine; stop 1 pushes to the left, 2 to the right."""
    from oncall_gym import OncallVectorEnv

    world = {"world": "cartpole"}
    env = OncallVectorEnv(world, batch, autoreset_mode="same_step", **keywords)
    env.reset(seed=1)
    return env.step, [1 + action.reshape(batch, 1) for action in two_sided(batch)]


def two_sided(batch: int, dtype: type = np.int64) -> list[Any]:
    """Random actions of CartPole."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, 2, batch).astype(dtype) for _ in range(PREPARED)]


def gymnasium_numpy(batch: int) -> tuple[Step, list[Any]]:
    """Gymnasium's own vectorised CartPole, in numpy."""
    import gymnasium

    env = gymnasium.make_vec("CartPole-v1", num_envs=batch, vectorization_mode="vector_entry_point")
    env.reset(seed=1)
    return env.step, two_sided(batch)


def gymnasium_sync(batch: int) -> tuple[Step, list[Any]]:
    """Gymnasium's loop over environments."""
    import gymnasium

    env = gymnasium.make_vec("CartPole-v1", num_envs=batch, vectorization_mode="sync")
    env.reset(seed=1)
    return env.step, two_sided(batch)


def envpool_sync(batch: int) -> tuple[Step, list[Any]]:
    """EnvPool on one thread."""
    import envpool

    env = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=batch, num_threads=1, seed=1)
    env.reset()
    return env.step, two_sided(batch)


def pufferlib_ocean(batch: int) -> tuple[Step, list[Any]]:
    """PufferLib's CartPole in C."""
    from pufferlib.ocean.cartpole.cartpole import Cartpole

    env = Cartpole(num_envs=batch)
    env.reset(seed=1)
    return env.step, two_sided(batch, np.int32)


#: Name, package that it needs, CPUs, processes, and how it is made.
ENGINES: dict[str, tuple[str, int, int, Callable[[int], tuple[Step, list[Any]]]]] = {
    "oncall": ("oncall_gym", 1, 1, lambda batch: oncall(batch, copy=False)),
    "oncall, new arrays": ("oncall_gym", 1, 1, lambda batch: oncall(batch)),
    "oncall, 2 threads": ("oncall_gym", 2, 1, lambda batch: oncall(batch, copy=False, threads=2)),
    "oncall x2": ("oncall_gym", 1, 2, lambda batch: oncall(batch, copy=False)),
    "cartpole": ("oncall_gym", 1, 1, lambda batch: oncall_cartpole(batch, copy=False)),
    "cartpole, new arrays": ("oncall_gym", 1, 1, lambda batch: oncall_cartpole(batch)),
    "cartpole, 2 threads": (
        "oncall_gym",
        2,
        1,
        lambda batch: oncall_cartpole(batch, copy=False, threads=2),
    ),
    "cartpole x2": ("oncall_gym", 1, 2, lambda batch: oncall_cartpole(batch, copy=False)),
    "gymnasium numpy": ("gymnasium", 1, 1, gymnasium_numpy),
    "gymnasium sync": ("gymnasium", 1, 1, gymnasium_sync),
    "envpool": ("envpool", 1, 1, envpool_sync),
    "envpool x2": ("envpool", 1, 2, envpool_sync),
    "pufferlib": ("pufferlib", 1, 1, pufferlib_ocean),
    "pufferlib x2": ("pufferlib", 1, 2, pufferlib_ocean),
}


def work(name: str, batch: int, cpus: list[int]) -> None:
    """A process of one engine: a line that comes in is a turn, one that goes out its rate."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)
    step, actions = ENGINES[name][3](batch)
    for action in actions * 4:
        step(action)
    print("ready", flush=True)
    clock = time.perf_counter
    for _ in sys.stdin:
        spans = []
        start = clock()
        while clock() - start < TURN:
            begin = clock()
            for action in actions:
                step(action)
            spans.append(clock() - begin)
        most = 3 * statistics.median(spans)
        kept = [span for span in spans if span <= most]
        print(len(kept) * PREPARED * batch / sum(kept), flush=True)


class Worker:
    """One of these processes, seen from outside."""

    def __init__(self, name: str, batch: int, cpus: list[int]) -> None:
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            "--worker",
            name,
            "--batches",
            str(batch),
        ]
        command += ["--cpus", ",".join(map(str, cpus))]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # PufferLib leaves a link where it is imported.
            cwd=tempfile.gettempdir(),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.is_ready = self.stdout.readline().strip() == "ready"

    def begin(self) -> None:
        """Starts a turn."""
        self.stdin.write("turn\n")
        self.stdin.flush()

    def end(self) -> float:
        """Its rate."""
        return float(self.stdout.readline())

    def close(self) -> None:
        """Ends the process."""
        self.stdin.close()
        self.process.wait()


def measure(batch: int, names: list[str], rounds: int) -> dict[str, list[float]]:
    """Rates of all engines at a batch size."""
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 1]
    workers: dict[str, list[Worker]] = {}
    for name in names:
        package, width, processes, _ = ENGINES[name]
        if importlib.util.find_spec(package) is None:
            print(f"  {name}: {package} is not installed, skipped")
        elif width * processes > len(cpus):
            print(f"  {name}: needs two CPUs, skipped")
        else:
            started = [Worker(name, batch, cpus[k : k + width]) for k in range(processes)]
            if all(worker.is_ready for worker in started):
                workers[name] = started
            else:
                print(f"  {name}: does not start in this build or with this batch, skipped")
    rates: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(rounds):
        for name, group in workers.items():
            for worker in group:
                worker.begin()
            rates[name].append(sum(worker.end() for worker in group))
    for group in workers.values():
        for worker in group:
            worker.close()
    return rates


def main() -> None:
    """Measures and prints a table for each batch size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batches", default="1,1024,8192")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="beginnings of names, with commas")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--cpus", default="0", help=argparse.SUPPRESS)
    args = parser.parse_args()
    batches = [int(batch) for batch in args.batches.split(",")]
    if args.worker:
        work(args.worker, batches[0], [int(cpu) for cpu in args.cpus.split(",")])
        return
    only = tuple(part for part in args.only.split(",") if part)
    names = [name for name in ENGINES if not only or name.startswith(only)]
    for batch in batches:
        print(f"batch {batch}")
        rates = measure(batch, names, args.rounds)
        if not rates:
            continue
        middle = {name: statistics.median(found) for name, found in rates.items()}
        base = next(iter(middle.values()))
        head = f"  {'engine':<20} {'M steps/s':>10} {'lowest':>8} {'highest':>8} {'ratio':>8}"
        print(f"{head} {'us a call':>10}")
        for name, found in rates.items():
            low, high, rate = min(found) / 1e6, max(found) / 1e6, middle[name]
            row = f"  {name:<20} {rate / 1e6:>10.2f} {low:>8.2f} {high:>8.2f}"
            calls = ENGINES[name][2] * batch / rate * 1e6
            print(f"{row} {rate / base:>8.2f} {calls:>10.2f}")


if __name__ == "__main__":
    main()
