#!/usr/bin/env python3
"""Writes prompts to collect a model's own answers to: many domains, in our own words, from a seed.

    python3 tools/prompts/generate.py --count 20000 --seed 1 --out prompts.jsonl

A line is {"id", "category", "prompt"} or, for conversations, {"id", "category", "messages"}. Prompt number i of a
seed is the same however many are asked for, and no two are the same.
"""

import argparse
import json
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "generator"))

import dialogues  # noqa: E402
import maths  # noqa: E402
import programs  # noqa: E402
import texts  # noqa: E402


def code(rng):
    return rng.choice(programs.CODE)(rng)


def with_articles(text):
    """"a apple" comes of filling templates."""
    return re.sub(r"\b([Aa]) (?=[aeio](?!ne\b|nce\b)[a-z]|umbrella|unhappy)", r"\1n ", text)


# What the prompts are about, by weight.
CATEGORIES = {
    "chat": (10, texts.chat),
    "code": (16, code),
    "maths": (11, maths.maths),
    "extraction": (9, texts.extraction),
    "summarising": (8, texts.summary),
    "translation": (6, texts.translation),
    "explanation": (12, texts.explanation),
    "creative": (9, texts.creative),
    "multilingual": (5, texts.multilingual),
    "lists": (6, texts.lists),
    "editing": (6, texts.editing),
    "questions": (6, texts.questions),
    "forms": (6, texts.forms),
    "dialogue": (8, dialogues.dialogue),
}


def generate(seed, count):
    """The first `count` prompts of a seed, one after another."""
    names = list(CATEGORIES)
    weights = [CATEGORIES[name][0] for name in names]
    seen = set()
    for i in range(count):
        rng = random.Random(f"{seed}/{i}")
        while True:
            category = rng.choices(names, weights)[0]
            made = CATEGORIES[category][1](rng)
            if isinstance(made, str) and category not in ("code", "multilingual"):
                made = with_articles(made)
            text = made if isinstance(made, str) else json.dumps(made)
            if text not in seen:
                break
        seen.add(text)
        key = "prompt" if isinstance(made, str) else "messages"
        yield {"id": f"g{seed}-{i:06}", "category": category, key: made}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=20000, help="prompts (default: 20000)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other prompts (default: 1)")
    parser.add_argument("--out", default="-", help="file to write (default: standard output)")
    given = parser.parse_args()
    out = sys.stdout if given.out == "-" else open(given.out, "w", encoding="utf-8")
    with out:
        for prompt in generate(given.seed, given.count):
            out.write(json.dumps(prompt, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
