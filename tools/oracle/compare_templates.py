#!/usr/bin/env python3
"""Compares chat templates as `paceline tokenize` renders them with jinja2, and the ids with those of
the tokenizers library; prints counts.

    pip install jinja2==3.1.6 tokenizers==0.23.3 gguf numpy
    tools/oracle/compare_templates.py build/release/src/apps/paceline FOLDER [TEMPLATE.jinja ...]

FOLDER has tokenizer.json and tokenizer_config.json; without templates its own is compared. Exit
status 1 when anything differs. Where jinja2 raises, an error is wanted.
"""
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer

import make_chat_golden
from chat_templates import CONVERSATIONS


def conversations():
    rng = random.Random(5)
    pieces = ["Hello", " ", "\n", "ok?", "  two\n\nlines ", "é漢字🦙", "", "{{ x }}", "{% if %}", "'\"<&>",
              "<think>\nhm\n</think>\n\nso", "1, 2, 3", "\t", "[INST]", "user", "do n't"]
    talks = list(CONVERSATIONS.values())
    for _ in range(60):
        talk = []
        if rng.random() < 0.5:
            talk.append({"role": "system", "content": "".join(rng.choices(pieces, k=2))})
        for turn in range(rng.randrange(0, 6)):
            talk.append({"role": ("user", "assistant")[turn % 2],
                         "content": "".join(rng.choices(pieces, k=rng.randrange(0, 5)))})
        if rng.random() < 0.15:
            talk.append({"role": rng.choice(["user", "system", "tool", "assistant", "robot"]),
                         "content": "extra"})
        talks.append(talk)
    return [(talk, prompt) for talk in talks for prompt in (False, True)]


def token(config, key):
    value = config.get(key)
    return value["content"] if isinstance(value, dict) else value or ""


def compare(program, folder, name, source):
    config = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    specials = [t.content for t in tokenizer.get_added_tokens_decoder().values() if t.special]
    talks = conversations()
    with tempfile.TemporaryDirectory() as made:
        made = Path(made)
        (made / "tokenizer.json").symlink_to((folder / "tokenizer.json").absolute())
        shutil.copy(folder / "tokenizer_config.json", made)
        (made / "chat_template.jinja").write_text(source)
        (made / "talks").write_text("".join(
            json.dumps({"messages": talk, "add_generation_prompt": prompt}) + "\n"
            for talk, prompt in talks))
        done = subprocess.run([program, "tokenize", made, "--lines", made / "talks"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        print(f"{name}: refused: {done.stderr.decode().strip()}")
        return 1
    n_errors = n_raised = n_ids = 0
    for (talk, prompt), line in zip(talks, done.stdout.splitlines(), strict=True):
        ours = json.loads(line)
        try:
            text = make_chat_golden.render(source, talk, prompt, token(config, "bos_token"),
                                           token(config, "eos_token"))
        except Exception as e:  # what jinja2 raises, whatever the kind
            text, raised = None, str(e)
            n_raised += 1
        wrong = ours.get("text") != text
        if not wrong and text is not None and not any(
                special in m["content"] for m in talk for special in specials):
            n_ids += 1
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            bos = tokenizer.encode("", add_special_tokens=True).ids
            if bos and ids[:1] != bos[:1]:
                ids = bos[:1] + ids
            wrong = ours["ids"] != ids
        if wrong:
            n_errors += 1
            if n_errors <= 3:
                print(f"  {name}: {talk} {prompt}\n    ours      {ours}\n    reference "
                      f"{text if text is not None else raised!r}")
    print(f"{name}: {len(talks)} conversations ({n_raised} raise), ids of {n_ids}; "
          f"{n_errors} differ")
    return n_errors


def main():
    program, folder, *templates = sys.argv[1:]
    folder = Path(folder)
    if templates:
        total = sum(compare(program, folder, Path(t).name, Path(t).read_text()) for t in templates)
    else:
        config = json.loads((folder / "tokenizer_config.json").read_text())
        total = compare(program, folder, str(folder), config["chat_template"])
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
