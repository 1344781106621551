"""Writes tests/data/math.csv: exp, ln, ln(1 + x), sin and cos to 40 digits.

Needs mpmath. Each value is given as the nearest double and what that double leaves of it, so that
an error of a fraction of a unit in the last place can be seen.

    python tests/reference/math_values.py
"""

import csv
import pathlib
import random

from mpmath import cos, exp, log, log1p, mp, mpf, sin

mp.dps = 40


def arguments(rng: random.Random) -> dict[str, list[float]]:
    def log_uniform(low: float, high: float) -> float:
        return float(mp.exp(rng.uniform(float(log(low)), float(log(high)))))

    near_one = [1.0 + rng.choice([-1, 1]) * log_uniform(1e-16, 0.4) for _ in range(200)]
    small = [rng.choice([-1, 1]) * log_uniform(1e-18, 0.4) for _ in range(200)]
    turns = [k * 1.5707963267948966 + rng.uniform(-1e-6, 1e-6) for k in range(-100, 100)]
    return {
        "exp": [rng.uniform(-707, 709) for _ in range(250)]
        + [rng.uniform(-1, 1) for _ in range(250)],
        "ln": [log_uniform(1e-300, 1e300) for _ in range(250)] + near_one,
        "ln_1p": [log_uniform(1e-9, 1e9) for _ in range(250)] + small,
        "sin": [rng.uniform(-30, 30) for _ in range(300)] + turns,
        "cos": [rng.uniform(-30, 30) for _ in range(300)] + turns,
    }


def main() -> None:
    functions = {"exp": exp, "ln": log, "ln_1p": log1p, "sin": sin, "cos": cos}
    out = pathlib.Path(__file__).parents[1] / "data" / "math.csv"
    with out.open("w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["function", "x", "nearest", "rest"])
        for name, xs in arguments(random.Random(1)).items():
            for x in xs:
                value = functions[name](mpf(x))
                nearest = float(value)
                w.writerow([name, repr(x), repr(nearest), repr(float(value - mpf(nearest)))])
    print(out)


if __name__ == "__main__":
    main()
