#!/usr/bin/env python3
"""Writes src/text/unicode_classes.inc: which code points are letters, numbers and white space.

The classes are asked from the tokenizers library itself, code point by code point, because its
Unicode version, not ours, decided how the texts that a model was trained on were cut.

    pip install tokenizers==0.23.3
    tools/oracle/make_unicode_classes.py src/text/unicode_classes.inc
"""
import sys

import tokenizers
from tokenizers import pre_tokenizers


def classes():
    """Letters and numbers of the GPT-2 pattern, its white space, numbers of the Digits step."""
    pattern = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = pre_tokenizers.Digits(individual_digits=True)
    letters, numbers, spaces, digit_step = [], [], [], []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        char = chr(code)
        if len(pattern.pre_tokenize_str("a" + char)) == 1:
            letters.append(code)
        elif len(pattern.pre_tokenize_str("1" + char)) == 1:
            numbers.append(code)
        elif len(pattern.pre_tokenize_str("!" + char)) == 2:
            spaces.append(code)
        if len(digits.pre_tokenize_str("a" + char)) == 2:
            digit_step.append(code)
    return letters, numbers, spaces, digit_step


def ranges(codes):
    out = []
    for code in codes:
        if out and out[-1][1] == code - 1:
            out[-1][1] = code
        else:
            out.append([code, code])
    return out


def main():
    letters, numbers, spaces, digit_step = classes()
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("// Written by tools/oracle/make_unicode_classes.py from tokenizers "
                  f"{tokenizers.__version__}; not edited by hand.\n")
        for name, codes in (("kLetters", letters), ("kNumbers", numbers), ("kSpaces", spaces),
                            ("kDigitStep", digit_step)):
            out.write(f"constexpr CodeRange {name}[] = {{\n")
            cells = [f"{{0x{a:x}, 0x{b:x}}}," for a, b in ranges(codes)]
            for i in range(0, len(cells), 5):
                out.write("    " + " ".join(cells[i:i + 5]) + "\n")
            out.write("};\n")


if __name__ == "__main__":
    main()
