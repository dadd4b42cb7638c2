#!/usr/bin/env python3
"""Compares `paceline tokenize` with the tokenizers library, line by line, and prints counts.

    pip install tokenizers==0.23.3 gguf numpy faker
    tools/oracle/compare_tokenizers.py build/release/src/apps/paceline MODEL[=REFERENCE] ...

MODEL is what the program reads: a tokenizer.json, a folder with one, or a .gguf file. REFERENCE is
the tokenizer.json that the library reads; a folder's own unless given. A SmolLM2 .gguf file needs
none. Exit status 1 when anything differs.

Each line is encoded with special tokens read and with special tokens as plain text; the ids are
decoded with special tokens and without. Texts: the seeds of tokenizer_texts.py, cut and mixed;
sentences by faker in its locales; every code point there is.
"""
import json
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path

import faker
from tokenizers import Tokenizer, decoders

import make_tokenizer_golden
import tokenizer_texts

LOCALES = """ar_AA bn_BD cs_CZ da_DK de_DE el_GR en_US es_ES fa_IR fi_FI fr_FR he_IL hi_IN hu_HU hy_AM
it_IT ja_JP ka_GE ko_KR ne_NP nl_NL pl_PL pt_BR ro_RO ru_RU sv_SE ta_IN th_TH tr_TR uk_UA vi_VN zh_CN
zh_TW""".split()
SCRIPTS = """LATIN CYRILLIC GREEK ARABIC HEBREW DEVANAGARI BENGALI TAMIL TELUGU THAI KHMER MYANMAR CJK
HIRAGANA KATAKANA HANGUL GEORGIAN ARMENIAN ETHIOPIC TIBETAN RUNIC GOTHIC CHEROKEE""".split()


def faker_lines(per_locale=200):
    lines = []
    for locale in LOCALES:
        fake = faker.Faker(locale)
        fake.seed_instance(11)
        for i in range(per_locale):
            parts = [fake.text(120), fake.name(), fake.address(), fake.company(), fake.date()]
            lines.append(parts[i % 5] if i % 3 else " ".join(parts))
    return lines


def code_point_lines(width=48):
    codes = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    spread = ["".join(codes[i:i + width]) for i in range(0, len(codes), width)]
    # Between letters, so that marks have something to join.
    return spread + ["e".join(codes[i:i + 24]) for i in range(0, 0x30000, 24)]


def texts(special_tokens):
    lines = tokenizer_texts.all_lines() + tokenizer_texts.mixed_lines(10000, seed=23)
    lines += tokenizer_texts.SPECIAL + faker_lines() + code_point_lines()
    names = special_tokens[:40]
    lines += [f"a{a} b {b}\n{a}{b} <{a}>" for a, b in zip(names, names[1:] + names[:1])]
    lines += ["\ufffd\u2581 \u2581\u2581  x", "<0x41><0x0A> <0xE4>", "\u2581", "x\u2581y", "> </p>"]
    return lines


def scripts_of(line):
    found = set()
    for char in line:
        name = unicodedata.name(char, "").split(" ")[0]
        if name in SCRIPTS:
            found.add(name)
    return found


def reference(model, given):
    if given:
        return Tokenizer.from_file(given)
    if model.endswith(".gguf"):
        tokenizer = make_tokenizer_golden.smollm2(model)[1]
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer
    path = Path(model)
    return Tokenizer.from_file(str(path / "tokenizer.json" if path.is_dir() else path))


def run(program, model, values, *flags):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)
        file.flush()
        done = subprocess.run([program, "tokenize", model, "--lines", file.name, *flags],
                              stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def differences(what, inputs, ours, theirs):
    n = 0
    assert len(inputs) == len(ours) == len(theirs)
    for given, a, b in zip(inputs, ours, theirs):
        if a == b:
            continue
        n += 1
        if n <= 5:
            print(f"  {what} {given!r}\n    ours      {a!r}\n    reference {b!r}")
    return n


def compare(program, model, given):
    tokenizer = reference(model, given)
    specials = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
    lines = texts(specials)
    counts = {"lines": len(lines)}
    for plain in (False, True):
        flags = ["--plain"] if plain else []
        tokenizer.encode_special_tokens = plain
        theirs = [e.ids for e in tokenizer.encode_batch(lines, add_special_tokens=False)]
        ours = run(program, model, lines, *flags)
        name = "plain" if plain else "special"
        counts[f"ids, {name}"] = differences(f"ids, {name}", lines, ours, theirs)
        texts_back = tokenizer.decode_batch(theirs, skip_special_tokens=plain)
        counts[f"text, {name}"] = differences(
            f"text, {name}", theirs, run(program, model, theirs, *flags), texts_back)
    scripts = Counter(script for line in lines for script in scripts_of(line))
    print(f"{model}: {counts['lines']:,} lines in {len(scripts)} scripts; differences: "
          + ", ".join(f"{n} {what}" for what, n in counts.items() if what != "lines"))
    return sum(n for what, n in counts.items() if what != "lines")


def main():
    program, *models = sys.argv[1:]
    total = 0
    for model in models:
        name, _, given = model.partition("=")
        total += compare(program, name, given)
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
