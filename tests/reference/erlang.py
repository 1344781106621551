"""Writes tests/data/erlang.csv: Erlang B and C to 40 digits, printed to 17.

Needs mpmath. Erlang B through the upper incomplete gamma function, a closed form that shares
nothing with the recursion under test: B(n, a) = e^-a a^n / Gamma(n + 1, a).

    python tests/reference/erlang.py
"""

import csv
import pathlib

from mpmath import mp, mpf

mp.dps = 40
SERVERS = [1, 2, 3, 7, 16, 31, 64, 100, 160, 161, 256, 333, 480, 639, 640]
SHARES = [
    "1e-9",
    "1e-4",
    "0.01",
    "0.1",
    "0.3",
    "0.5",
    "0.7",
    "0.9",
    "0.97",
    "0.99",
    "0.999",
    "0.999999",
    "1",
    "1.0001",
    "1.1",
    "2",
    "10",
    "1000",
    "1e6",
]


def main() -> None:
    out = pathlib.Path(__file__).parents[1] / "data" / "erlang.csv"
    with out.open("w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["servers", "load_erlangs", "erlang_b", "erlang_c"])
        for n in SERVERS:
            for share in SHARES:
                load = float(mpf(share) * n)  # the double that the Rust code is given
                a = mpf(load)
                b = mp.exp(-a) * a**n / mp.gammainc(n + 1, a)
                c = b / (1 - a / n * (1 - b)) if a < n else mpf(1)
                w.writerow([n, repr(load), mp.nstr(b, 17), mp.nstr(c, 17)])
    print(out)


if __name__ == "__main__":
    main()
