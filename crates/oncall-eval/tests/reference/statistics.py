"""Recomputes the known values of the statistics with SciPy and NumPy; the PCG stream is written out here.

    pip install scipy
    python crates/oncall-eval/tests/reference/statistics.py
"""

import numpy as np
from scipy import stats

M64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def scramble(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def mix(h: int, word: int) -> int:
    w = (word * GOLDEN) & M64
    w = ((w << 32) | (w >> 32)) & M64
    return scramble(scramble((h + GOLDEN) & M64) ^ w)


class Pcg32:
    """PCG-XSH-RR 64/32; a seed sets the state as is and then takes one step."""

    def __init__(self, state: int, increment: int) -> None:
        self.increment = increment | 1
        self.state = (state + self.increment) & M64
        self.step()

    def step(self) -> None:
        self.state = (self.state * 6364136223846793005 + self.increment) & M64

    def next(self) -> int:
        state = self.state
        self.step()
        word = (((state >> 18) ^ state) >> 27) & 0xFFFFFFFF
        rotation = state >> 59
        return ((word >> rotation) | (word << (32 - rotation))) & 0xFFFFFFFF


def bootstrap(strata: list[list[float]], seed: int, resamples: int) -> dict[str, list[float]]:
    """Interval of mean and interquartile mean, drawn within each stratum."""
    digest = mix(seed, 0x626F6F74)
    rng = Pcg32(digest, scramble(digest))
    means, iqms = [], []
    for _ in range(resamples):
        drawn = [s[(rng.next() * len(s)) >> 32] for s in strata for _ in s]
        means.append(np.mean(drawn))
        iqms.append(stats.trim_mean(drawn, 0.25))
    return {
        "mean": np.quantile(means, [0.025, 0.975]).tolist(),
        "iqm": np.quantile(iqms, [0.025, 0.975]).tolist(),
    }


def drawn(sample: list[float], rng: Pcg32) -> list[float]:
    """As many values as there are, with replacement."""
    return [sample[(rng.next() * len(sample)) >> 32] for _ in sample]


def interval(statistic, seed: int, resamples: int) -> list:
    """Ends of a statistic's interval; it gets the stream and draws from it what it needs."""
    digest = mix(seed, 0x626F6F74)
    rng = Pcg32(digest, scramble(digest))
    return np.quantile([statistic(rng) for _ in range(resamples)], [0.025, 0.975], axis=0).T.tolist()


def profile(values: list[float], taus: list[float]) -> list[float]:
    """Share of the values above each threshold."""
    return [float(np.mean(np.array(values) > tau)) for tau in taus]


def improvement(pairs: list[tuple[list[float], list[float]]]) -> float:
    """Mean over the scenarios of P(X > Y) with half of the ties: rliable's probability of improvement."""
    return float(np.mean([stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)) for x, y in pairs]))


# The same awkward sample as in the Rust test: ties, a long tail, a length that 4 does not divide.
A = [-22.5, -31.0, -18.25, -140.0, -22.5, -9.5, -55.75, -27.0, -33.5, -21.0, -19.0]
B = [-30.0, -31.0, -12.25, -100.0, -25.5, -9.5, -66.75, -28.0, -31.5, -41.0, -19.5]

if __name__ == "__main__":
    for name, sample in (("A", A), ("B", B), ("A[:4]", A[:4]), ("A[:3]", A[:3])):
        print(name, "mean", float(np.mean(sample)), "iqm", float(stats.trim_mean(sample, 0.25)))
    print("quantiles of A", np.quantile(A, [0.0, 0.025, 0.5, 0.9, 1.0]).tolist())
    print("paired win share", float(np.mean([(a > b) + 0.5 * (a == b) for a, b in zip(A, B)])))
    print("bootstrap A, seed 7, 500", bootstrap([A], 7, 500))
    print("bootstrap A and B[:6] as strata, seed 8, 500", bootstrap([A, B[:6]], 8, 500))
    strata = [A, B[:6], [-5.0, -60.0, -20.5]]
    print("median of A", interval(lambda rng: np.median(drawn(A, rng)), 7, 500))
    print("median of A[:10]", interval(lambda rng: np.median(drawn(A[:10], rng)), 7, 500))
    print(
        "median of A and B[:6]",
        float(np.median(A + B[:6])),
        interval(lambda rng: np.median(drawn(A, rng) + drawn(B[:6], rng)), 8, 500),
    )
    print(
        "median of three means",
        float(np.median([np.mean(s) for s in strata])),
        interval(lambda rng: np.median([np.mean(drawn(s, rng)) for s in strata]), 9, 400),
    )

    def gap(values: list[float]) -> float:
        return -20.0 - np.mean(np.minimum(values, -20.0))

    def pooled(rng: Pcg32) -> list[float]:
        return [x for s in strata for x in drawn(s, rng)]

    print("gap to -20", float(gap(sum(strata, []))), interval(lambda rng: gap(pooled(rng)), 9, 400))
    taus = [-150.0, -31.0, -22.5, -10.0, 0.0]
    print("profile", profile(sum(strata, []), taus))
    print("profile", interval(lambda rng: profile(pooled(rng), taus), 9, 400))
    pairs = [(A, B), (B[:6], A[3:])]
    print("improvement", improvement(pairs), improvement(pairs[:1]))
    print(
        "improvement",
        interval(lambda rng: improvement([(drawn(x, rng), drawn(y, rng)) for x, y in pairs]), 5, 300),
    )
