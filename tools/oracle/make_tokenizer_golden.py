#!/usr/bin/env python3
"""Token ids by the tokenizers library, for src/text/*_test.cpp.

    pip install tokenizers==0.23.3 gguf numpy
    tools/oracle/make_tokenizer_golden.py SmolLM2-135M-Instruct.Q4_1.gguf tests/golden

Writes into the folder:
    tokenizer_smollm2.jsonl   ids under the vocabulary of the GGUF file. Its pre-type is `smollm`:
                              digits one by one, then the pattern of GPT-2
    tokenizer_tiny_*.json     small vocabularies trained here, one for each way of cutting
    tokenizer_tiny.jsonl      ids under each of them
Lines: {"text": ..., "ids": ...}; "special" where special tokens are read, as the library does;
otherwise the text is encoded without them.
"""
import json
import pathlib
import sys

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from tokenizers import trainers

import tokenizer_texts

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+"
          r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")


def byte_level(**kwargs):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, **kwargs)


CUTS = {
    "gpt2": byte_level(use_regex=True),
    "smollm": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)]),
    "llama3": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), byte_level(use_regex=False)]),
    "qwen2": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN2), "isolated"), byte_level(use_regex=False)]),
    "prefix": pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True),
}


def smollm2(path):
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    plain = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    plain.pre_tokenizer = CUTS["smollm"]
    special = Tokenizer.from_str(plain.to_str())
    special.add_special_tokens([AddedToken(t, special=True, normalized=False)
                                for t, kind in zip(tokens, types) if kind == 3])
    return plain, special


def train(name):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = CUTS[name]
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=560, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(tokenizer_texts.SCRIPTS + tokenizer_texts.OTHER, trainer)
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>")])
    return tokenizer


def ids(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def dump(out, **entry):
    out.write(json.dumps(entry, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    folder = pathlib.Path(sys.argv[2])
    plain, special = smollm2(sys.argv[1])
    lines = tokenizer_texts.all_lines()
    with open(folder / "tokenizer_smollm2.jsonl", "w", encoding="ascii") as out:
        for line in lines + tokenizer_texts.SPECIAL:
            dump(out, text=line, ids=ids(plain, line))
        for line in tokenizer_texts.SPECIAL:
            dump(out, text=line, special=True, ids=ids(special, line))

    trained = {name: train(name) for name in CUTS}
    for name, tokenizer in trained.items():
        text = json.loads(tokenizer.to_str())
        (folder / f"tokenizer_tiny_{name}.json").write_text(
            json.dumps(text, ensure_ascii=True, separators=(",", ":")), encoding="ascii")
    rest = tokenizer_texts.edge_lines()
    short = [line for line in rest if len(line) < 200]
    with open(folder / "tokenizer_tiny.jsonl", "w", encoding="ascii") as out:
        for line in (tokenizer_texts.SCRIPTS + tokenizer_texts.OTHER + short +
                     tokenizer_texts.mixed_lines(120) + tokenizer_texts.SPECIAL +
                     ["a<think>b</think> c", "<think></think>", "<think", "<|im_end|></think>"]):
            dump(out, text=line, **{name: ids(t, line) for name, t in trained.items()})


if __name__ == "__main__":
    main()
