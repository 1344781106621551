"""Environment steps a second of three trainers, one after the other and in turns.

    make compare-trainers

`oncall-ppo`, the one-file trainer and stable-baselines3 play the same scenario with the same rows,
roll-outs, minibatches, width of the networks and threads, once for each number of epochs. A round
runs each of them, so that whatever else the machine does meets all alike; what counts is the ratio.
A run's figure is the median over its updates, the first left out; the table's the median over
rounds.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("oncall-ppo", "one file", "stable-baselines3")


def command(name: str, oncall_ppo: Path) -> list[str]:
    """How a trainer is started."""
    if name == "oncall-ppo":
        # The others' critic is not told what was drawn either.
        return [str(oncall_ppo), "train", "--plain-critic"]
    script = "ppo_cleanrl.py" if name == "one file" else "ppo_sb3.py"
    return [sys.executable, str(HERE / script)]


def speed(name: str, options: argparse.Namespace, epochs: int, updates: int) -> float:
    """Steps a second of one run."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        steps = updates * options.rows * options.horizon
        given = {
            "scenario": options.scenario,
            "steps": steps,
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
        result = subprocess.run(full, capture_output=True, text=True, check=False, env=environment)
        if result.returncode != 0:
            raise SystemExit(f"compare: {' '.join(full)} failed:\n{result.stderr}{result.stdout}")
        with (out / "training.csv").open(newline="") as file:
            rates = [float(line["steps_per_s"]) for line in csv.DictReader(file)]
    return statistics.median(rates[1:])


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
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    if options.updates < 3 or options.rounds < 1:
        parser.error("expected at least 3 updates and 1 round")
    if not options.oncall_ppo.is_file():
        parser.error(f"oncall-ppo = {options.oncall_ppo}: no such file; run `make ppo`")
    found: dict[int, dict[str, list[float]]] = {
        epochs: {name: [] for name in NAMES} for epochs in options.epochs
    }
    for turn in range(options.rounds):
        for epochs, rates in found.items():
            for name in NAMES:
                rates[name].append(speed(name, options, epochs, options.updates))
                text = f"round {turn + 1}, {epochs} epochs, {name}: {rates[name][-1]:,.0f} steps/s"
                print(text, file=sys.stderr, flush=True)
    print(
        f"{options.scenario}, {options.rows} rows x {options.horizon} steps, minibatch "
        f"{options.minibatch}, two networks of {options.hidden}-{options.hidden} tanh, "
        f"{options.threads} threads, median of {options.rounds} rounds"
    )
    print(f"{'epochs':>6}  {'trainer':18} {'steps/s':>9}  {'oncall-ppo is':>14}")
    for epochs, rates in found.items():
        own = statistics.median(rates["oncall-ppo"])
        for name in NAMES:
            rate = statistics.median(rates[name])
            ratio = statistics.median(
                a / b for a, b in zip(rates["oncall-ppo"], rates[name], strict=True)
            )
            faster = "" if rate == own else f"{ratio:.1f} times"
            print(f"{epochs:>6}  {name:18} {rate:>9,.0f}  {faster:>14}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
