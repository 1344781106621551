"""The values of rliable itself (Agarwal et al. 2021) for the samples of `statistics.py`.

    pip install rliable "pandas<3"
    python crates/oncall-eval/tests/reference/rliable_values.py

Its resamples come from another generator: points agree to rounding, intervals to sampling error.
"""

import numpy as np
from rliable import library, metrics

A = [-22.5, -31.0, -18.25, -140.0, -22.5, -9.5, -55.75, -27.0, -33.5, -21.0, -19.0]
B = [-30.0, -31.0, -12.25, -100.0, -25.5, -9.5, -66.75, -28.0, -31.5, -41.0, -19.5]
C = [x / 2 - 8 for x in A]
TARGET = -20.0
TAUS = np.array([-150.0, -31.0, -22.5, -10.0, 0.0])


def aggregate(scores: np.ndarray) -> np.ndarray:
    return np.array([
        metrics.aggregate_mean(scores),
        metrics.aggregate_median(scores),
        metrics.aggregate_iqm(scores),
        metrics.aggregate_optimality_gap(scores, gamma=TARGET),
    ])


if __name__ == "__main__":
    x, y = np.array([A, B, C]).T, np.array([B, C, A]).T
    points, ends = library.get_interval_estimates({"x": x}, aggregate, reps=20_000)
    for name, point, (low, high) in zip(("mean", "median", "iqm", "gap"), points["x"], ends["x"].T):
        print(name, float(point), [float(low), float(high)])
    points, ends = library.get_interval_estimates(
        {"x,y": (x, y)}, metrics.probability_of_improvement, reps=20_000
    )
    print("improvement", float(points["x,y"]), ends["x,y"].ravel().tolist())
    points, ends = library.create_performance_profile({"x": x}, TAUS, reps=20_000)
    print("profile", points["x"].tolist(), ends["x"].tolist())
