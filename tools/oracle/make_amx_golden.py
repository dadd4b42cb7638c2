"""Writes tests/golden/amx_products.bin: products of float32 rows with bf16 weights in the amx
numerics of docs/numerics.md, computed here in whole numbers and nowhere in floating point.

    python tools/oracle/make_amx_golden.py tests/golden/amx_products.bin

Layout, little-endian. "PLAX", u32 number of cases; each case: i32 rows, outputs, inputs; float32 x
[rows][inputs]; bf16 weights [outputs][inputs]; float32 y [rows][outputs]. A NaN stands for any NaN.
"""

import math
import random
import struct
import sys
from fractions import Fraction

CHUNK = 32  # inputs that a tile takes at once
LEAST = Fraction(1, 2**126)
NAN = "nan"

rng = random.Random(20261130)


class Number:
    """A float32: a sign, and a fraction of no sign, or "inf" or "nan"."""

    def __init__(self, negative, size):
        self.negative, self.size = negative, size

    @classmethod
    def of_bits(cls, bits):
        exponent, mantissa = bits >> 23 & 0xFF, bits & 0x7FFFFF
        if exponent == 0xFF:
            return cls(bits >> 31 == 1, NAN if mantissa else "inf")
        size = (Fraction(mantissa, 2**149) if exponent == 0
                else Fraction(mantissa + 2**23) * Fraction(2)**(exponent - 150))
        return cls(bits >> 31 == 1, size)

    def bits(self):
        sign = int(self.negative) << 31
        if self.size == NAN:
            return sign | 0x7FC00000
        if self.size == "inf":
            return sign | 0x7F800000
        if self.size == 0:
            return sign
        exponent = max(floor_log2(self.size), -126)
        units = self.size / Fraction(2)**(exponent - 23)
        assert units.denominator == 1 and units < 2**24
        if units < 2**23:  # a denormal
            return sign | int(units)
        return sign | (exponent + 127) << 23 | int(units) - 2**23

    def value(self):
        return -self.size if self.negative else self.size

    def special(self):
        return isinstance(self.size, str)


def floor_log2(x):
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2)**e <= x else e - 1


def nearest(units):
    """A fraction to a whole number, ties to even."""
    whole, rest = divmod(units.numerator, units.denominator)
    twice = 2 * rest
    return whole + (twice > units.denominator or (twice == units.denominator and whole % 2 == 1))


def rounded(negative, size, bits, least_exponent=None):
    """A fraction of no sign to `bits` significant bits; with a least exponent, as denormals do."""
    if size == 0:
        return Number(negative, Fraction(0))
    exponent = floor_log2(size)
    if least_exponent is not None:
        exponent = max(exponent, least_exponent)
    unit = Fraction(2)**(exponent - bits + 1)
    size = nearest(size / unit) * unit
    return Number(negative, "inf" if size >= Fraction(2)**128 else size)


def without_denormals(x):
    return Number(x.negative, Fraction(0)) if not x.special() and x.size < LEAST else x


def plus(products, c):
    """The exact sum of c and a product (or another number), rounded once to 24 bits, flushed."""
    terms = [products, c]
    if any(t.size == NAN for t in terms):
        return Number(False, NAN)
    infinite = [t for t in terms if t.size == "inf"]
    if infinite:
        return infinite[0] if all(t.negative == infinite[0].negative for t in infinite) else Number(
            False, NAN)
    total = terms[0].value() + terms[1].value()
    if total == 0:  # +0, unless both are -0
        return Number(terms[0].negative and terms[1].negative, Fraction(0))
    return without_denormals(rounded(total < 0, abs(total), 24))


def times(a, b):
    negative = a.negative != b.negative
    if a.size == NAN or b.size == NAN:
        return Number(False, NAN)
    if a.special() or b.special():
        return Number(False, NAN) if 0 in (a.size, b.size) else Number(negative, "inf")
    return Number(negative, a.size * b.size)


def to_bf16(x):
    if x.special():
        return x
    return rounded(x.negative, x.size, 8, least_exponent=-126)


def split(x):
    high = to_bf16(x)
    if high.special():
        return high, Number(False, Fraction(0))
    rest = x.value() - high.value()
    return high, to_bf16(Number(rest < 0, abs(rest)))


def add_tile(row, column, c):
    """What TDPBF16PS does with one element: even and odd inputs in a chain each."""
    chains = [Number(False, Fraction(0)), Number(False, Fraction(0))]
    for k, (a, b) in enumerate(zip(row, column)):
        product = times(without_denormals(a), without_denormals(b))
        chains[k % 2] = plus(product, chains[k % 2])
    return plus(plus(chains[0], chains[1]), without_denormals(c))


def product(x, weights):
    zero = Number(False, Fraction(0))
    sums = [zero, zero]
    filled = (-len(x)) % CHUNK
    parts = [list(p) for p in zip(*[split(v) for v in x])]
    weights = weights + [zero] * filled
    for part in (0, 1):
        row = parts[part] + [zero] * filled
        for begin in range(0, len(row), CHUNK):
            sums[part] = add_tile(row[begin:begin + CHUNK], weights[begin:begin + CHUNK],
                                  sums[part])
    return add_ieee(sums[0], sums[1])


def add_ieee(a, b):
    """An ordinary float32 addition, denormals kept."""
    if a.special() or b.special() or a.value() + b.value() == 0:
        return plus(a, b)
    total = a.value() + b.value()
    return rounded(total < 0, abs(total), 24, least_exponent=-126)


def f32_bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def draw(kind):
    if kind == "denormal":
        return f32_bits(math.ldexp(rng.gauss(0, 1), -rng.randrange(60, 140)))
    if kind == "special" and rng.randrange(40) == 0:
        return rng.choice([0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x80000000, 0x7F7FFFFF])
    return f32_bits(math.ldexp(rng.gauss(0, 1), rng.randrange(-8, 8)))


def write_case(out, rows, n_out, n_in, kind):
    x = [[draw(kind) for _ in range(n_in)] for _ in range(rows)]
    w = [[to_bf16(Number.of_bits(draw(kind))).bits() for _ in range(n_in)] for _ in range(n_out)]
    out.write(struct.pack("<iii", rows, n_out, n_in))
    for row in x:
        out.write(struct.pack(f"<{n_in}I", *row))
    for row in w:
        out.write(struct.pack(f"<{n_in}H", *[bits >> 16 for bits in row]))
    columns = [[Number.of_bits(bits) for bits in row] for row in w]
    for row in x:
        values = [Number.of_bits(bits) for bits in row]
        y = [product(values, column).bits() for column in columns]
        out.write(struct.pack(f"<{n_out}I", *y))


def main(path):
    cases = [(2, 17, 64, "ordinary"), (3, 5, 77, "ordinary"), (9, 4, 33, "ordinary"),
             (2, 16, 40, "denormal"), (17, 3, 31, "denormal"), (4, 16, 48, "special")]
    with open(path, "wb") as out:
        out.write(b"PLAX" + struct.pack("<I", len(cases)))
        for case in cases:
            write_case(out, *case)


if __name__ == "__main__":
    main(sys.argv[1])
