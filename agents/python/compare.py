"""Environment steps a second of three trainers, one after the other and in turns.

    make compare-trainers

`oncall-ppo`, the one-file trainer and stable-baselines3 play the same scenario with the same rows,
roll-outs, minibatches, width of the networks and threads, once for each number of epochs. A round
runs each of them, so that whatever else the machine does meets all alike; what counts is the ratio.

* steps/s: by the clock, the median over a run's updates without the first.
* steps/CPU s: by the processors' time of the whole process, less that of a run of one update, so
  that loading PyTorch and the first roll-outs do not count. Other work on the machine hardly moves
  it, and a trainer that waits or spins with many threads cannot hide it.

The table has the medians over rounds.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("oncall-ppo", "one file", "stable-baselines3")


@dataclass
class Speeds:
    """Steps a second of a trainer, one figure a round."""

    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def command(name: str, oncall_ppo: Path) -> list[str]:
    """How a trainer is started."""
    if name == "oncall-ppo":
        # The others' critic is not told what was drawn either.
        return [str(oncall_ppo), "train", "--plain-critic"]
    script = "ppo_cleanrl.py" if name == "one file" else "ppo_sb3.py"
    return [sys.executable, str(HERE / script)]


def run(name: str, options: argparse.Namespace, epochs: int, updates: int) -> tuple[float, float]:
    """One run: steps a second by the clock, and processors' seconds of the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        given = {
            "scenario": options.scenario,
            "steps": updates * options.rows * options.horizon,
            "seed": 1,
            "threads": options.threads,
            "rows": options.rows,
            "horizon": options.horizon,
            "minibatch": options.minibatch,
            "hidden": options.hidden,
            "epochs": epochs,
            "evaluation-episodes": 0,
            "out": out,
        }
        full = command(name, options.oncall_ppo)
        for key, value in given.items():
            full += [f"--{key}", str(value)]
        # On a busy machine threads that spin while they wait for each other are 100 times slower.
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(full, capture_output=True, text=True, check=False, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if result.returncode != 0:
            raise SystemExit(f"compare: {' '.join(full)} failed:\n{result.stderr}{result.stdout}")
        with (out / "training.csv").open(newline="") as file:
            rates = [float(line["steps_per_s"]) for line in csv.DictReader(file)]
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return statistics.median(rates[1:] or rates), seconds


def measure(options: argparse.Namespace) -> dict[int, dict[str, Speeds]]:
    """All rounds, by epochs and trainer."""
    pairs = [(epochs, name) for epochs in options.epochs for name in NAMES]
    start_s = {(epochs, name): run(name, options, epochs, 1)[1] for epochs, name in pairs}
    found = {epochs: {name: Speeds() for name in NAMES} for epochs in options.epochs}
    steps = (options.updates - 1) * options.rows * options.horizon
    for turn in range(options.rounds):
        for epochs, name in pairs:
            rate, seconds = run(name, options, epochs, options.updates)
            speeds = found[epochs][name]
            speeds.clock.append(rate)
            speeds.processor.append(steps / max(seconds - start_s[epochs, name], 1e-3))
            text = f"{rate:,.0f} steps/s, {speeds.processor[-1]:,.0f} steps/CPU s"
            print(f"round {turn + 1}, {epochs} epochs, {name}: {text}", file=sys.stderr, flush=True)
    return found


def table(options: argparse.Namespace, found: dict[int, dict[str, Speeds]]) -> str:
    """The medians, and how much slower each trainer is than `oncall-ppo`."""
    lines = [
        f"{options.scenario}, {options.rows} rows x {options.horizon} steps, minibatch "
        f"{options.minibatch}, two networks of {options.hidden}-{options.hidden} tanh, "
        f"{options.threads} threads, median of {options.rounds} rounds",
        f"{'epochs':>6}  {'trainer':18}{'steps/s':>9}{'ratio':>7}{'steps/CPU s':>13}{'ratio':>7}",
    ]
    for epochs, trainers in found.items():
        for name, speeds in trainers.items():
            cells = f"{epochs:>6}  {name:18}"
            for kind, width in (("clock", 9), ("processor", 13)):
                rates, own = getattr(speeds, kind), getattr(trainers["oncall-ppo"], kind)
                # Of each round: what slowed it down slowed both.
                ratio = statistics.median(b / a for a, b in zip(rates, own, strict=True))
                cells += f"{statistics.median(rates):>{width},.0f}{ratio:>7.1f}"
            lines.append(cells)
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--oncall-ppo", type=Path, default=Path("target/release/oncall-ppo"))
    parser.add_argument("--scenario", default="spike")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=10, help="of each run; at least 3")
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=64)
    parser.add_argument("--minibatch", type=int, default=2048)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write every round's figures here")
    options = parser.parse_args()
    if options.updates < 3 or options.rounds < 1:
        parser.error("expected at least 3 updates and 1 round")
    if not options.oncall_ppo.is_file():
        parser.error(f"oncall-ppo = {options.oncall_ppo}: no such file; run `make ppo`")
    found = measure(options)
    print(table(options, found))
    if options.json:
        plain = {e: {n: vars(s) for n, s in trainers.items()} for e, trainers in found.items()}
        options.json.write_text(json.dumps(plain, indent=2) + "\n")


if __name__ == "__main__":
    main()
