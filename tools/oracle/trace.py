"""Writes a trace with transformers, in the form that `paceline trace-compare` reads.

    python tools/oracle/trace.py MODEL TEXT OUT [--prefill N] [--top N] [--piece N] [--dtype float32]

MODEL: a folder that transformers loads, or SmolLM2's GGUF file (see smollm2.py). The text is read
in pieces, each in one forward pass; rows from prefill - 1 on are written.
"""

import argparse
import json
import struct

import smollm2
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def bits(value):
    return struct.pack(">f", value).hex()


def load(path, dtype):
    """The model, and a function from text to ids."""
    if path.endswith(".gguf"):
        smol = smollm2.SmolLM2(path)
        return smol.model.to(dtype), smol.encode
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype)
    return model.eval(), lambda text: tokenizer(text).input_ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("out")
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--top", type=int, default=16)
    parser.add_argument("--piece", type=int, default=0, help="tokens; 0: the model's context")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    args = parser.parse_args()

    model, encode = load(args.model, getattr(torch, args.dtype))
    with open(args.text, encoding="utf-8") as file:
        ids = encode(file.read())
    piece = args.piece or model.config.max_position_embeddings
    with open(args.out, "w") as out, torch.no_grad():
        header = {"engine": "transformers", "dtype": args.dtype, "prefill": args.prefill,
                  "piece": piece, "top": args.top}
        out.write(json.dumps({"trace": 1, "configuration": header}) + "\n")
        for number, begin in enumerate(range(0, len(ids), piece)):
            part = ids[begin:begin + piece]
            if len(part) <= args.prefill:
                break
            logits = model(torch.tensor([part])).logits[0].float()
            sums = torch.logsumexp(logits.double(), dim=-1)
            for position in range(max(args.prefill - 1, 0), len(part) - 1):
                row = logits[position]
                # Descending, ties by the lowest id: a stable sort over ascending ids.
                order = torch.sort(row, descending=True, stable=True).indices[:args.top].tolist()
                target = part[position + 1]
                out.write(json.dumps({
                    "piece": number, "position": position, "next": target,
                    "nll": sums[position].item() - row[target].item(),
                    "log_sum": sums[position].item(),
                    "top": [[i, row[i].item(), bits(row[i].item())] for i in order]}) + "\n")


if __name__ == "__main__":
    main()
