"""Writes tests/golden/quant_blocks.bin: blocks of every weight type with the values that the `gguf`
package (tested with 0.19) gives for them, and float32 blocks with the bytes it makes of them.

    pip install gguf numpy
    python tools/oracle/make_quant_golden.py tests/golden/quant_blocks.bin

Layout, little-endian. "PLQG", u32 number of sections; each section:
    u32 kind (0 = blocks to values, 1 = values to blocks), u32 GGUF type id, u32 n_blocks,
    u32 block_length, u32 block_bytes, then the input of all blocks, then the output of all blocks.
Values are float32. A NaN in the output stands for any NaN.
"""

import struct
import sys

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGML_QUANT_SIZES, dequantize, quantize

rng = np.random.default_rng(20240607)
N_BLOCKS = 192

# Scales that catch a decoder out: zeros, the smallest and largest denormal, the smallest and
# largest normal, infinities, NaNs with both signs.
HARD_HALVES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400,
               0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7D01, 0x3C00]


def random_blocks(qtype):
    length, size = GGML_QUANT_SIZES[qtype]
    blocks = rng.integers(0, 256, (N_BLOCKS, size), dtype=np.uint8)
    if qtype in (T.F32, T.F16, T.BF16):
        return blocks
    n_halves = 2 if qtype == T.Q4_1 else 1
    scales = rng.normal(0, 0.1, (N_BLOCKS, n_halves)).astype(np.float16).view(np.uint16)
    for i in range(64):  # every hard value as scale, and with another as minimum
        scales[i] = [HARD_HALVES[i % 16], HARD_HALVES[(i // 16 * 5 + i) % 16]][:n_halves]
    scales[64:96] = rng.integers(0, 65536, (32, n_halves))
    blocks[:, : 2 * n_halves] = scales.view(np.uint8)
    return blocks


def random_values():
    """Blocks of 32 floats: ordinary ones, ties, constants, zeros, tiny and huge ones."""
    values = rng.normal(0, 1, (N_BLOCKS, 32)).astype(np.float32)
    values *= np.exp2(rng.integers(-20, 12, (N_BLOCKS, 1))).astype(np.float32)
    values[0] = 0.0
    values[1] = -0.0
    values[2] = 1.5
    values[3] = -2.25
    values[4] = np.linspace(-8, 7.5, 32)                  # halves, exactly
    values[5] = np.arange(32) * 4 - 63.5                  # d = 0.5: ties for Q8_0
    values[6, 0], values[6, 1:] = 127.0, np.arange(31) + 0.5
    values[7] = np.where(np.arange(32) % 2, 3.0, -3.0)    # equal magnitudes, negative one first
    values[8] = np.where(np.arange(32) % 2, -3.0, 3.0)
    values[9] *= np.float32(1e-30)
    values[10] = values[11] / np.abs(values[11]).max() * np.float32(3e38) / 4  # d beyond float16
    values[12] *= np.float32(1e-6)                        # d is a float16 denormal
    values[13] = np.arange(32) / np.float32(15 * 2)
    values[14, :], values[14, 17] = 0.0, -1.0
    return values


sections = []
with np.errstate(all="ignore"):
    for qtype in (T.F32, T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1):
        blocks = random_blocks(qtype)
        values = np.asarray(dequantize(blocks, qtype), dtype=np.float32)
        sections.append((0, qtype, blocks.tobytes(), values.tobytes()))
    values = random_values()
    for qtype in (T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1):
        rows = values if GGML_QUANT_SIZES[qtype][0] == 32 else values[:, :1]
        rows = np.ascontiguousarray(rows)
        sections.append((1, qtype, rows.tobytes(), quantize(rows, qtype).tobytes()))

# Types that are only read, fewer blocks of 256 of them: where each keeps its float16 scales, and
# how many.
SCALES = {T.Q5_0: (0, 1), T.Q5_1: (0, 2), T.Q2_K: (80, 2), T.Q3_K: (108, 1), T.Q4_K: (0, 2),
          T.Q5_K: (0, 2), T.Q6_K: (208, 1)}


def random_read_blocks(qtype):
    length, size = GGML_QUANT_SIZES[qtype]
    n_blocks = 64 if length == 32 else 20
    blocks = rng.integers(0, 256, (n_blocks, size), dtype=np.uint8)
    at, n_halves = SCALES[qtype]
    scales = rng.normal(0, 0.1, (n_blocks, n_halves)).astype(np.float16).view(np.uint16)
    for i in range(n_blocks // 2):
        scales[i] = [HARD_HALVES[i % 16], HARD_HALVES[(i // 16 * 5 + i) % 16]][:n_halves]
    blocks[:, at : at + 2 * n_halves] = scales.view(np.uint8)
    return blocks


with np.errstate(all="ignore"):
    for qtype in SCALES:
        blocks = random_read_blocks(qtype)
        values = np.asarray(dequantize(blocks, qtype), dtype=np.float32)
        sections.append((0, qtype, blocks.tobytes(), values.tobytes()))

with open(sys.argv[1], "wb") as out:
    out.write(b"PLQG" + struct.pack("<I", len(sections)))
    for kind, qtype, given, expected in sections:
        length, size = GGML_QUANT_SIZES[qtype]
        n_blocks = len(expected if kind == 1 else given) // size
        out.write(struct.pack("<5I", kind, qtype, n_blocks, length, size) + given + expected)
