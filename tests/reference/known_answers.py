"""Recomputes the known answers of streams and distributions, independently of the Rust code.

Standard library only. The last bits of exp, log, sin and cos are those of the C library of the
machine that runs it, so the Rust tests compare those to 1e-14; uniform numbers must be equal.

    python tests/reference/known_answers.py
"""

import math

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


def key(seed: int, episode: int, split: str) -> int:
    tag = {"train": 0x74726169, "test": 0x74657374}[split]
    return mix(mix(mix(GOLDEN, tag), seed), episode)


class Pcg32:
    """PCG-XSH-RR 64/32 as in O'Neill's reference code, seeded by state and increment."""

    def __init__(self, state: int, increment: int):
        self.inc = increment | 1
        self.state = (state + self.inc) & M64
        self._step()

    def _step(self) -> None:
        self.state = (self.state * 6364136223846793005 + self.inc) & M64

    def next_u32(self) -> int:
        old = self.state
        self._step()
        xorshifted = (((old >> 18) ^ old) >> 27) & 0xFFFFFFFF
        rot = old >> 59
        return ((xorshifted >> rot) | (xorshifted << ((-rot) & 31))) & 0xFFFFFFFF

    def uniform(self) -> float:
        low = self.next_u32()
        high = self.next_u32()
        return ((high << 32 | low) >> 11) * 2.0**-53


class Mulberry32:
    def __init__(self, seed: int):
        self.a = seed & 0xFFFFFFFF

    def next_u32(self) -> int:
        self.a = (self.a + 0x6D2B79F5) & 0xFFFFFFFF
        t = self.a
        t = ((t ^ (t >> 15)) * (t | 1)) & 0xFFFFFFFF
        t ^= (t + ((t ^ (t >> 7)) * (t | 61))) & 0xFFFFFFFF
        return (t ^ (t >> 14)) & 0xFFFFFFFF

    def uniform(self) -> float:
        return self.next_u32() / 2.0**32


def stream(k: int, purpose: int, minute: int, generator: str = "pcg"):
    h = mix(k ^ ((purpose * GOLDEN) & M64), minute)
    if generator == "mulberry32":
        return Mulberry32(h >> 32)
    return Pcg32(h, scramble(h) ^ purpose)


def normal_pair(s):
    radius = math.sqrt(-2.0 * math.log(1.0 - s.uniform()))
    angle = 2.0 * math.pi * s.uniform()
    return radius * math.cos(angle), radius * math.sin(angle)


def poisson(s, mean: float) -> int:
    limit, count, product = math.exp(-mean), 0, s.uniform()
    while product > limit:
        count += 1
        product *= s.uniform()
    return count


SCENARIO, DEMAND = 2, 3

if __name__ == "__main__":
    m = Mulberry32(1)
    print("mulberry32(1):", [m.next_u32() for _ in range(4)])
    k = key(7, 3, "train")
    s = stream(k, DEMAND, 11)
    print("pcg (7, 3, train) demand 11:", repr(s.uniform()), repr(s.uniform()))
    print("mulberry (7, 3, train) demand 11:", repr(stream(k, DEMAND, 11, "mulberry32").uniform()))
    k = key(1, 0, "train")

    def fresh():
        return stream(k, SCENARIO, 0)

    print("uniform:", repr(fresh().uniform()))
    print("uniform 20..160:", repr(20.0 + 140.0 * fresh().uniform()))
    print("exponential 45:", repr(-45.0 * math.log(1.0 - fresh().uniform())))
    print("normal pair:", *map(repr, normal_pair(fresh())))
    print("poisson 20:", poisson(fresh(), 20.0))
    print("choice of 1, 2, 3:", 1 + int(fresh().uniform() * 3))
    print("row seeds of root 41:", [mix(mix(41, 0x726F7773), row) for row in range(2)])
