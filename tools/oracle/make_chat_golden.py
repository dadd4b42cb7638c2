#!/usr/bin/env python3
"""Chat templates rendered by jinja2 as transformers sets it up, for src/text/*_test.cpp.

    pip install jinja2==3.1.6 tokenizers==0.23.3 gguf numpy
    tools/oracle/make_chat_golden.py SmolLM2-135M-Instruct.Q4_1.gguf tests/golden

Writes chat_templates.jsonl (a template and what it gives for each conversation: the text, or null
where it raises) and chat_smollm2.jsonl (the real template, with ids).
"""
import datetime
import itertools
import json
import pathlib
import re
import sys

import gguf
import jinja2
import jinja2.ext
import jinja2.sandbox

import make_tokenizer_golden
from chat_templates import CONVERSATIONS, TEMPLATES


class Generation(jinja2.ext.Extension):
    """{% generation %} marks the assistant's part for training; its body is rendered as it is."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.If(jinja2.nodes.Const(True), body, [], []).set_lineno(line)


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: datetime.datetime.now().strftime(format)
    return env


def render(source, messages, prompt, bos, eos):
    return environment().from_string(source).render(
        messages=messages, tools=None, documents=None, add_generation_prompt=prompt,
        bos_token=bos, eos_token=eos)


def encode(plain, special_ids, text, messages):
    """Ids with the template's special tokens read and those inside contents left as text."""
    contents = sorted({m["content"] for m in messages} - {""}, key=len, reverse=True)
    marks = {}
    for i, content in enumerate(c for c in contents if "<|" in c):
        marks[chr(0xE000 + i)] = content
        text = text.replace(content, chr(0xE000 + i))
    ids, parts = [], re.split("(" + "|".join(map(re.escape, special_ids)) + ")", text)
    for part in parts:
        if part in special_ids:
            ids.append(special_ids[part])
        else:
            for mark, content in marks.items():
                part = part.replace(mark, content)
            ids += plain.encode(part, add_special_tokens=False).ids
    return ids


def main():
    folder = pathlib.Path(sys.argv[2])
    with open(folder / "chat_templates.jsonl", "w", encoding="ascii") as out:
        for name, source in TEMPLATES.items():
            cases = []
            for (talk, messages), prompt in itertools.product(CONVERSATIONS.items(), (False, True)):
                try:
                    text, error = render(source, messages, prompt, "<s>", "</s>"), None
                except Exception as e:  # what jinja2 raises, whatever the kind
                    text, error = None, str(e)
                cases.append({"messages": messages, "add_generation_prompt": prompt, "text": text,
                              "error": error, "talk": talk})
            if all(case["text"] == cases[0]["text"] for case in cases):
                cases = cases[:1]
            make_tokenizer_golden.dump(out, name=name, source=source, cases=cases)

    fields = gguf.GGUFReader(sys.argv[1]).fields
    source = fields["tokenizer.chat_template"].contents()
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    special_ids = {t: i for i, (t, kind) in enumerate(zip(tokens, types)) if kind == 3}
    plain, _ = make_tokenizer_golden.smollm2(sys.argv[1])
    with open(folder / "chat_smollm2.jsonl", "w", encoding="ascii") as out:
        for messages, prompt in itertools.product(CONVERSATIONS.values(), (False, True)):
            text = render(source, messages, prompt, "<|im_start|>", "<|im_end|>")
            make_tokenizer_golden.dump(out, messages=messages, add_generation_prompt=prompt,
                                       text=text, ids=encode(plain, special_ids, text, messages))


if __name__ == "__main__":
    main()
