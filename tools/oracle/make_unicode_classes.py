#!/usr/bin/env python3
"""Writes src/text/unicode_classes.inc: the classes of code points that tokenizers look at.

The classes are asked from the tokenizers library itself, code point by code point, because its
Unicode versions (it has several), not ours, decided how the texts that a model was trained on were
cut.

    pip install tokenizers==0.23.3
    tools/oracle/make_unicode_classes.py src/text/unicode_classes.inc
"""
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def matching(pattern):
    """Code points that match a pattern of one character."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return [code for code in CODES if split.pre_tokenize_str(chr(code))]


def word_characters():
    """Those next to which a token with single_word is not read."""
    tokenizer = Tokenizer(models.BPE(vocab={"?": 0}, merges=[], unk_token="?"))
    tokenizer.add_tokens([AddedToken("xx", single_word=True, normalized=False)])
    return [code for code in CODES
            if tokenizer.token_to_id("xx") not in tokenizer.encode(chr(code) + "xx").ids]


def stripped_characters():
    """Those that a token with lstrip takes along: white space by another table."""
    tokenizer = Tokenizer(models.BPE(vocab={"?": 0}, merges=[], unk_token="?"))
    tokenizer.add_tokens([AddedToken("xx", lstrip=True, normalized=False)])
    return [code for code in CODES if len(tokenizer.encode(chr(code) + "xx").ids) == 1]


def nfc():
    """Code points that NFC changes, and those that it may join to, or move before, what precedes."""
    compose = normalizers.NFC().normalize_str
    decompose = normalizers.NFD().normalize_str
    changes = [code for code in CODES if compose(chr(code)) != chr(code)]
    seconds = set()
    for code in CODES:
        parts = decompose(chr(code))
        if parts != chr(code):
            seconds.update(ord(part) for part in parts[1:])
    joins = [code for code in CODES
             if code in seconds or
             compose("a\u0315" + chr(code)) != "a\u0315" + chr(code) or  # class below 232
             compose("a" + chr(code) + "\u0334") != "a" + chr(code) + "\u0334" or  # above 1
             decompose(chr(code))[0] != chr(code) and ord(decompose(chr(code))[0]) in seconds]
    return changes, joins


def classes():
    """Letters and numbers of the GPT-2 pattern, its white space, numbers of the Digits step."""
    pattern = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = pre_tokenizers.Digits(individual_digits=True)
    letters, numbers, spaces, digit_step = [], [], [], []
    for code in CODES:
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
    assert stripped_characters() == spaces
    changes, joins = nfc()
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("// Written by tools/oracle/make_unicode_classes.py from tokenizers "
                  f"{tokenizers.__version__}; not edited by hand.\n")
        for name, codes in (("kLetters", letters), ("kNumbers", numbers), ("kSpaces", spaces),
                            ("kDigitStep", digit_step), ("kMarks", matching(r"\p{M}")),
                            ("kUpperCase", matching(r"[\p{Lu}\p{Lt}]")),
                            ("kLowerCase", matching(r"\p{Ll}")), ("kWords", word_characters()),
                            ("kNfcChanges", changes), ("kNfcJoins", joins)):
            out.write(f"constexpr CodeRange {name}[] = {{\n")
            cells = [f"{{0x{a:x}, 0x{b:x}}}," for a, b in ranges(codes)]
            for i in range(0, len(cells), 5):
                out.write("    " + " ".join(cells[i:i + 5]) + "\n")
            out.write("};\n")


if __name__ == "__main__":
    main()
