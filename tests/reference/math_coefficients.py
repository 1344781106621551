"""Prints the coefficients of crates/oncall-core/src/math.rs. Needs mpmath.

Chebyshev interpolation in 50 digits: within a factor of two of the best polynomial of its degree.

    python tests/reference/math_coefficients.py
"""

from collections.abc import Callable

from mpmath import chebyfit, cos, exp, log, mp, mpf, pi, sin, sqrt

mp.dps = 50


def show(name: str, function: Callable, low: mpf, high: mpf, count: int) -> None:
    coefficients, error = chebyfit(function, [low, high], count, error=True)
    print(f"{name}, largest error {mp.nstr(error, 3)}")
    for coefficient in reversed(coefficients):
        print(f"    {float(coefficient)!r}")


def logarithm(z: mpf) -> mpf:
    s = sqrt(z)
    return (log((1 + s) / (1 - s)) / s - 2) / z


def sine(z: mpf) -> mpf:
    r = sqrt(z)
    return (sin(r) / r - 1) / z


def cosine(z: mpf) -> mpf:
    return (cos(sqrt(z)) - 1 + z / 2) / z**2


def main() -> None:
    tiny = mpf("1e-12")
    edge = log(mpf(2)) / 2 * mpf("1.0001")
    show("exp: P", lambda r: (exp(r) - 1 - r) / r**2, -edge, edge, 10)
    top = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.0001")
    show("ln: R", logarithm, tiny, top, 7)
    top = (pi / 4) ** 2 * mpf("1.0002")
    show("sin: S", sine, tiny, top, 6)
    show("cos: C", cosine, tiny, top, 6)
    low, high = sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1
    show("ln in single precision: P", lambda f: (log(1 + f) - f + f * f / 2) / f**3, low, high, 8)


if __name__ == "__main__":
    main()
