#!/usr/bin/env python3
"""Ids and texts by the tokenizers library for each step that tokenizer.json may hold, for
src/text/tokenizer_steps_test.cpp.

    pip install tokenizers==0.23.3
    tools/oracle/make_tokenizer_steps_golden.py tests/golden

Writes into the folder:
    tokenizer_tiny_chars.json   a small vocabulary of characters with byte fallback, trained here
    tokenizer_steps.jsonl       first {"variants": {name: {"base": file, members to replace}}}; then
                                lines {"text", name: ids, name + "_plain": ids where special tokens
                                are plain text, name + "_text": what decoding gives, where it is not
                                the text}
The byte-level variants build on tokenizer_tiny_gpt2.json of make_tokenizer_golden.py.
"""
import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import tokenizer_texts

WHOLE = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN35 = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
          r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL)
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT4O = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTIONS + r"?|[^\r\n\p{L}\p{N}]?"
         + UPPER + "+" + LOWER + "*" + CONTRACTIONS + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL)

CASES = [
    "HTMLParser's getURLs DON'TStop iPhoneOS x86_64 ABCdefGHIjkl ÄÖüß ǅungla Ⅷx ªAB ʰAb", "a/b\n//c\r\n/",
    "e\u0301A\u0301B \u0301x !\u0301 1\u0301 क्षि हिन्दी नमस्ते", "ſ's 'ſ x'ſ X'LLy I'M",
    "\u212b \u1e9b\u0323 q\u0307\u0323 \u1100\u1161\u11a8 \uac00\u11a8 \u0958 \u2126 \uf900 \u0344",
    "a\u1ac1\u0315b \u0898\u0334 x\u0301\u0898\u0323", "a \u2581b\u2581\u2581 c", "▁", " ", "  ", "x", " x",
    "<0x41> <0x4 <0x0A>\n", "\x00\x7f\u0080", "the cat sat on the mat  ", "\n the\n\n\n cat\n",
    "a <l> b<l>c  <l><l>\t<l>", "a<r>  b<r>c<r> <r>\n<r>", "x  <both>  y<both>z", "word words aword word.word_word",
    "wordé éword ·word· 'word'", "xq\u0307\u0323 xq\u0323\u0307 <s>q\u0323\u0307</s>", "<a><a><b><a<b>>", "<s> <s><s>a</s>",
    "line</s>  \n  <s>", "<l>", " <l> ", "<unk>x<unk>",
]


def added(content, token_id, **flags):
    return {"id": token_id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": False, **flags}


def chars_vocabulary():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = WHOLE
    trainer = trainers.BpeTrainer(vocab_size=900, show_progress=False, limit_alphabet=330,
                                  special_tokens=["<unk>", "<s>", "</s>"] + BYTES)
    tokenizer.train_from_iterator(tokenizer_texts.SCRIPTS[:12] + tokenizer_texts.OTHER, trainer)
    text = json.loads(tokenizer.to_str())
    text["added_tokens"] = [t for t in text["added_tokens"] if t["content"] not in BYTES]
    return text


def part(step):
    return json.loads(step.__getstate__())


def variants(vocab):
    strip = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                               decoders.Strip(" ", 1, 0)])
    specials = [added("<unk>", 0, special=True), added("<s>", 1, special=True),
                added("</s>", 2, special=True)]
    byte_specials = [added(c, i, special=True) for i, c in
                     enumerate(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])]

    def split(pattern, behavior="Isolated", invert=False):
        return {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": False}]}

    def bars(scheme, cut):
        return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}

    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    chars = {"base": "tokenizer_tiny_chars.json", "decoder": part(strip), "normalizer": None,
             "added_tokens": specials}
    return {
        "gemma": {**chars, "decoder": part(WHOLE), "normalizer": replace,
                  "pre_tokenizer": {"type": "Split", "pattern": {"String": " "},
                                    "behavior": "MergedWithPrevious", "invert": False},
                  "added_tokens": specials + [added("▁▁", vocab["▁▁"]), added("\n\n", vocab["\n\n"]),
                                              added("<l>", len(vocab))]},
        "llama2": {**chars, "pre_tokenizer": None, "normalizer": {
            "type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]}},
        "bars_first": {**chars, "pre_tokenizer": bars("first", False)},
        "bars_always": {**chars, "pre_tokenizer": bars("always", True)},
        "spaces_cut": {**chars, "decoder": part(WHOLE), "pre_tokenizer": {
            "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
            "invert": False}},
        "gpt4o": {"base": "tokenizer_tiny_gpt2.json",
                  "pre_tokenizer": split(GPT4O, "Removed", invert=True)},
        "qwen35": {"base": "tokenizer_tiny_gpt2.json", "normalizer": {"type": "NFC"},
                   "pre_tokenizer": split(QWEN35)},
        "flags": {"base": "tokenizer_tiny_gpt2.json", "normalizer": {"type": "NFC"},
                  "added_tokens": byte_specials + [
                      added("<l>", 560, lstrip=True, special=True), added("<r>", 561, rstrip=True),
                      added("<both>", 562, lstrip=True, rstrip=True, special=True),
                      added("word", 563, single_word=True),
                      added("q\u0307\u0323", 564, normalized=True),
                      added("<s>", 565, rstrip=True, lstrip=True, single_word=True),
                      added("</s>", 566, normalized=True, lstrip=True, special=True),
                      added("<a>", 567), added("<a><b>", 568), added("<a<b>>", 569, special=True)]},
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    chars = chars_vocabulary()
    (folder / "tokenizer_tiny_chars.json").write_text(
        json.dumps(chars, ensure_ascii=True, separators=(",", ":")), encoding="ascii")
    made = variants(chars["model"]["vocab"])
    built = {}
    for name, variant in made.items():
        base = json.loads((folder / variant["base"]).read_text())
        built[name] = Tokenizer.from_str(
            json.dumps({**base, **{k: v for k, v in variant.items() if k != "base"}}))
    with open(folder / "tokenizer_steps.jsonl", "w", encoding="ascii") as out:
        def dump(entry):
            out.write(json.dumps(entry, ensure_ascii=True, separators=(",", ":")) + "\n")
        dump({"variants": made})
        for line in (tokenizer_texts.SCRIPTS[::3] + tokenizer_texts.OTHER[::2] + CASES +
                     tokenizer_texts.mixed_lines(30, seed=5)):
            entry = {"text": line}
            for name, tokenizer in built.items():
                tokenizer.encode_special_tokens = False
                ids = tokenizer.encode(line, add_special_tokens=False).ids
                entry[name] = ids
                tokenizer.encode_special_tokens = True
                plain = tokenizer.encode(line, add_special_tokens=False).ids
                if plain != ids:
                    entry[name + "_plain"] = plain
                back = tokenizer.decode(ids, skip_special_tokens=False)
                if back != line:
                    entry[name + "_text"] = back
            dump(entry)


if __name__ == "__main__":
    main()
