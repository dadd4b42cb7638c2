"""Writes a GGUF model again with its matrices of some names in another block type, for measuring what
reading that type costs (bench/conversion_error).

    pip install gguf numpy
    python tools/oracle/requantize_gguf.py IN.gguf OUT.gguf TYPE [PART_OF_NAME]

Rounding is to the nearest code of scales taken from the largest values, without the search for better
scales that other tools do. A matrix whose rows are no whole blocks of TYPE stays as it is.
"""

import sys

import numpy as np
from gguf import GGUFReader, GGUFWriter, GGUFValueType, GGML_QUANT_SIZES, dequantize, quantize
from gguf import GGMLQuantizationType as T


def halves(x):
    return np.ascontiguousarray(x.astype(np.float16)).view(np.uint8)


def divided(x, by):
    return np.divide(x, by, out=np.zeros_like(x), where=by != 0)


def pack_six_bits(scale, minimum):
    """8 scales and 8 minima of six bits in 12 bytes, as Q4_K and Q5_K hold them."""
    out = np.zeros((len(scale), 12), np.uint8)
    out[:, :4] = scale[:, :4] | (scale[:, 4:] >> 4 << 6)
    out[:, 4:8] = minimum[:, :4] | (minimum[:, 4:] >> 4 << 6)
    out[:, 8:] = (scale[:, 4:] & 15) | (minimum[:, 4:] & 15) << 4
    return out


def with_minimum(x, n_sub, code_max, scale_max):
    """x (blocks, 256) as d * scale * code - dmin * minimum with integer scales a sub-block."""
    x = x.reshape(len(x), n_sub, -1)
    low = np.minimum(x.min(2), 0)
    step = (x.max(2).clip(0) - low) / code_max
    d = (step.max(1, keepdims=True) / scale_max).astype(np.float16).astype(np.float32)
    dmin = (-low.min(1, keepdims=True) / scale_max).astype(np.float16).astype(np.float32)
    scale = np.rint(divided(step, np.broadcast_to(d, step.shape))).clip(0, scale_max)
    minimum = np.rint(divided(-low, np.broadcast_to(dmin, low.shape))).clip(0, scale_max)
    steps = np.broadcast_to((d * scale)[..., None], x.shape)
    code = np.rint(divided(x + (dmin * minimum)[..., None], steps)).clip(0, code_max)
    u8 = np.uint8
    return d, dmin, scale.astype(u8), minimum.astype(u8), code.astype(u8).reshape(len(x), 256)


def symmetric(x, code_min, scale_max):
    """x (blocks, 256) as d * scale * code, 16 signed scales a block."""
    x = x.reshape(len(x), 16, 16)
    peak = np.take_along_axis(x, np.abs(x).argmax(2)[..., None], 2)[..., 0]
    step = peak / code_min
    d = (np.abs(step).max(1, keepdims=True) / scale_max).astype(np.float16).astype(np.float32)
    scale = np.rint(divided(step, np.broadcast_to(d, step.shape))).clip(-scale_max, scale_max)
    steps = np.broadcast_to((d * scale)[..., None], x.shape)
    code = np.rint(divided(x, steps)).clip(code_min, -code_min - 1)
    return d, scale.astype(np.int8), code.astype(np.int8).reshape(len(x), 256)


def two_bits(code):
    c = code.reshape(len(code), 2, 4, 32)
    return (c[:, :, 0] | c[:, :, 1] << 2 | c[:, :, 2] << 4 | c[:, :, 3] << 6).reshape(len(code), 64)


def nibbles(code):
    c = (code & 15).reshape(len(code), 4, 2, 32)
    return (c[:, :, 0] | c[:, :, 1] << 4).reshape(len(code), 128)


def q2_k(x):
    d, dmin, scale, minimum, code = with_minimum(x, 16, 3, 15)
    return [scale | minimum << 4, two_bits(code), halves(d), halves(dmin)]


def q3_k(x):
    d, scale, code = symmetric(x, -4, 31)
    code = (code + 4).astype(np.uint8)
    third = (code >> 2).reshape(-1, 8, 32)
    mask = np.zeros((len(x), 32), np.uint8)
    for k in range(8):
        mask |= third[:, k] << k
    s = (scale + 32).astype(np.uint8)
    packed = np.zeros((len(x), 12), np.uint8)
    packed[:, :8] = (s[:, :8] & 15) | (s[:, 8:] & 15) << 4
    for k in range(4):
        packed[:, 8:] |= (s[:, 4 * k : 4 * k + 4] >> 4) << 2 * k
    return [mask, two_bits(code & 3), packed, halves(d)]


def q4_k(x):
    d, dmin, scale, minimum, code = with_minimum(x, 8, 15, 63)
    return [halves(d), halves(dmin), pack_six_bits(scale, minimum), nibbles(code)]


def q5_k(x):
    d, dmin, scale, minimum, code = with_minimum(x, 8, 31, 63)
    fifth = (code >> 4).reshape(-1, 8, 32)
    high = np.zeros((len(x), 32), np.uint8)
    for g in range(8):
        high |= fifth[:, g] << g
    return [halves(d), halves(dmin), pack_six_bits(scale, minimum), high, nibbles(code)]


def q6_k(x):
    d, scale, code = symmetric(x, -32, 127)
    code = (code + 32).astype(np.uint8)
    low = (code & 15).reshape(len(x), 2, 4, 32)
    ql = np.stack([low[:, :, 0] | low[:, :, 2] << 4, low[:, :, 1] | low[:, :, 3] << 4], 2)
    return [ql.reshape(len(x), 128), two_bits(code >> 4), scale.view(np.uint8), halves(d)]


K_TYPES = {T.Q2_K: q2_k, T.Q3_K: q3_k, T.Q4_K: q4_k, T.Q5_K: q5_k, T.Q6_K: q6_k}


def requantized(values, qtype):
    if qtype not in K_TYPES:
        return quantize(values, qtype)
    blocks = np.concatenate(K_TYPES[qtype](values.reshape(-1, 256)), axis=1)
    assert blocks.shape[1] == GGML_QUANT_SIZES[qtype][1]
    return blocks.reshape(len(values), -1)


def main(source, target, type_name, part=""):
    reader = GGUFReader(source)
    qtype = T[type_name]
    architecture = reader.get_field("general.architecture").contents()
    writer = GGUFWriter(target, architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=sub)
    change, size = 0.0, 0.0
    for tensor in reader.tensors:
        data = tensor.data
        length = GGML_QUANT_SIZES[qtype][0]
        if len(tensor.shape) == 2 and part in tensor.name and tensor.shape[0] % length == 0:
            values = np.asarray(dequantize(data, tensor.tensor_type), np.float32)
            data = requantized(values, qtype)
            change += float(np.square(dequantize(data, qtype) - values, dtype=np.float64).sum())
            size += float(np.square(values, dtype=np.float64).sum())
            writer.add_tensor(tensor.name, data, raw_dtype=qtype)
        else:
            writer.add_tensor(tensor.name, data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{type_name}: relative RMS error of the rounding {(change / size) ** 0.5:.4f}")


main(*sys.argv[1:])
