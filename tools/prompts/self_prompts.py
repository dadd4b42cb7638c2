#!/usr/bin/env python3
"""Prompts that a model writes itself (Magpie, Xu et al. 2024): it goes on with a user's turn that has just begun.

    python3 tools/prompts/self_prompts.py begin --count 12000 --out begin.jsonl
    paceline collect MODEL --raw --prompts begin.jsonl --temperature 0.7 --top-p 0.95 --max-tokens 72 --out begun
    python3 tools/prompts/self_prompts.py pick --paceline paceline --model MODEL --begun begin.jsonl --dump begun \\
        --out prompts.jsonl

The beginnings are in ChatML. A turn that did not end in time is cut behind its first sentence, or its last if it
holds a passage. `pick` keeps those of a fitting length that neither repeat themselves nor one another, begin alike
only so often, and share no eight words with the fixed sets here.
"""

import argparse
import collections
import json
import mmap
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "generator"))

from openers import OPENERS  # noqa: E402

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
WORDS = (4, 80)
GRAM = 8  # words that no prompt shares with a fixed set
ALIKE = 25  # prompts at most that begin with the same five words
FIXED = ("eval.jsonl", "bench.jsonl", "echo.jsonl", "prose.jsonl", "demo.jsonl", "drift.jsonl", "parity.jsonl")


def begin(count, seed, system):
    """Beginnings of chats; one in eight leaves all to the model."""
    openers = [(category, opener) for category, some in OPENERS.items() for opener in some if opener]
    turn = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n" if system else "<|im_start|>user\n"
    for i in range(count):
        rng = random.Random(f"{seed}/{i}")
        category, opener = ("any", "") if rng.random() < 1 / 8 else rng.choice(openers)
        yield {"id": f"s{seed}-{i:06d}", "category": category, "opener": opener, "prompt": turn + opener}


def words_of(text):
    return re.findall(r"\w+", text.lower())


def grams(text, n=GRAM):
    words = words_of(text)
    return {tuple(words[i:i + n]) for i in range(len(words) - n + 1)}


def repeats(text):
    """Whether some words come again and again: under half of the runs of three words are new."""
    words = words_of(text)
    runs = [tuple(words[i:i + 3]) for i in range(len(words) - 2)]
    return len(runs) >= 8 and len(set(runs)) < len(runs) / 2


def length(text):
    """In words; where a script writes none apart, three characters count as one."""
    wide = sum(ord(c) > 0x2E80 for c in text)
    return len(text.split()) + wide // 3


def turn_of(opener, text, ended):
    """The user's turn, or None where not one sentence of it was finished."""
    whole = opener + text
    if ended:
        return whole.strip()
    ends = [m.end() for m in re.finditer(r"[.!?](?=\s)|[。！？]|\n", whole) if m.end() > len(opener)]
    fitting = [end for end in ends if length(whole[:end]) >= 8]
    if not fitting:
        return None
    return whole[:fitting[-1 if opener.endswith("\n") else 0]].strip()


def pick(candidates, forbidden):
    """Of (id, category, text or None) those that are kept, and why others are not: (prompts, counts by reason)."""
    kept, why = [], collections.Counter()
    seen, starts = set(), collections.Counter()
    for name, category, text in candidates:
        if text is None:
            why["not one sentence"] += 1
            continue
        words = words_of(text)
        start = tuple(words[:5])
        if not WORDS[0] <= length(text) <= WORDS[1] or "\ufffd" in text or "<|" in text:
            reason = "length or form"
        elif repeats(text):
            reason = "repeats itself"
        elif tuple(words) in seen:
            reason = "there already"
        elif starts[start] >= ALIKE:
            reason = "begins like others"
        elif grams(text) & forbidden:
            reason = "in a fixed set"
        else:
            reason = "kept"
            seen.add(tuple(words))
            starts[start] += 1
            kept.append({"id": name, "category": category, "prompt": text})
        why[reason] += 1
    return kept, why


def forbidden_grams():
    found = set()
    for name in FIXED:
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            for line in file:
                prompt = json.loads(line)
                texts = [prompt["prompt"]] if "prompt" in prompt else [m["content"] for m in prompt["messages"]]
                for text in texts:
                    found |= grams(text)
    return found


def answers(dump):
    """(stream's JSON, tokens behind the prompt) of every stream of a dump (docs/formats.md)."""
    for shard in sorted(name for name in os.listdir(dump) if name.endswith(".pldump")):
        with open(os.path.join(dump, shard), "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            at = 64 + (struct.unpack_from("<I", data, 12)[0] + 63) // 64 * 64
            while at < len(data):
                magic, size, n_json, n_tokens = struct.unpack_from("<8sQII", data, at)
                if magic != b"PLSTREAM":
                    raise SystemExit(f"{shard}: no stream at byte {at}; let collect finish")
                info = json.loads(data[at + 64:at + 64 + n_json])
                tokens = struct.unpack_from(f"<{n_tokens}I", data, at + 64 + (n_json + 3) // 4 * 4)
                yield info, tokens[info["n_prompt"]:]
                at += size


def decoded(paceline, model, lists):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(ids) + "\n" for ids in lists)
        file.flush()
        run = subprocess.run([paceline, "tokenize", model, "--lines", file.name, "--plain"], check=True,
                             capture_output=True, text=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("begin", help="write beginnings of chats")
    first.add_argument("--count", type=int, default=12000)
    first.add_argument("--seed", type=int, default=1)
    first.add_argument("--system", default=SYSTEM, help="system turn in front (default: SmolLM2's own); empty: none")
    second = commands.add_parser("pick", help="keep the good ones of what the model made of them")
    second.add_argument("--paceline", default="paceline", help="the program, to turn ids into text")
    second.add_argument("--model", required=True)
    second.add_argument("--begun", required=True, help="what begin wrote")
    second.add_argument("--dump", required=True, help="what collect made of it")
    for command in (first, second):
        command.add_argument("--out", required=True)
    args = parser.parse_args()

    if args.command == "begin":
        prompts = begin(args.count, args.seed, args.system)
    else:
        with open(args.begun, encoding="utf-8") as file:
            begun = {b["id"]: b for b in map(json.loads, file)}
        found = list(answers(args.dump))
        texts = decoded(args.paceline, args.model, [list(tokens) for _, tokens in found])
        prompts, why = pick([(info["id"], info["category"],
                              turn_of(begun[info["id"]]["opener"], text, info["ended"]))
                             for (info, _), text in zip(found, texts)], forbidden_grams())
        print(", ".join(f"{reason}: {n}" for reason, n in why.most_common()), file=sys.stderr)
    with open(args.out, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(prompt, ensure_ascii=False) + "\n" for prompt in prompts)


if __name__ == "__main__":
    main()
