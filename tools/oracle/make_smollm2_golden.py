#!/usr/bin/env python3
"""What transformers in float32 makes of SmolLM2-135M-Instruct (the Q4_1 file, dequantised).

    python tools/oracle/make_smollm2_golden.py "$(script/fetch smollm2)"

writes tests/golden/smollm2_greedy.json:
    "greedy": for each prompt of tools/prompts/parity.jsonl, rendered by the model's chat template,
        {"id", "prompt", "prompt_ids", "token_ids", "gaps"}: 96 greedy tokens (the end id, if it
        comes, ends the text and is included) and the gap between the two best logits at each
    "top": one longer prompt, {"prompt_ids", "positions", "logits": [[[id, logit] x 20] ...]},
        best first, after ids[0 .. position] have been read
    "perplexity": {"file", "sha256", "n_tokens", "ids_head", "mean_nll"}: mean negative natural
        log-likelihood of tokens 1 .. n-1 of that file, plain text, no BOS, one window
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import torch

from smollm2 import SmolLM2

ROOT = Path(__file__).resolve().parents[2]
TEXT = "tests/golden/perplexity_text.txt"
N_TOKENS = 96


def top_logits(oracle, ids, positions):
    with torch.no_grad():
        rows = oracle.model(torch.tensor([ids]), use_cache=False).logits[0]
    out = []
    for position in positions:
        top = torch.topk(rows[position], 20)
        out.append([[int(i), round(float(v), 5)] for v, i in zip(top.values, top.indices)])
    return out


def mean_nll(oracle, ids):
    with torch.no_grad():
        logits = oracle.model(torch.tensor([ids]), use_cache=False).logits[0]
    losses = torch.nn.functional.cross_entropy(
        logits[:-1], torch.tensor(ids[1:]), reduction="none")
    return float(losses.double().mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    oracle = SmolLM2(args.model)

    greedy = []
    for line in (ROOT / "tools/prompts/parity.jsonl").read_text().splitlines():
        prompt = json.loads(line)
        ids = oracle.encode(oracle.chat(prompt["prompt"]))
        tokens, gaps = oracle.greedy(ids, N_TOKENS)
        greedy.append({"id": prompt["id"], "prompt": prompt["prompt"], "prompt_ids": ids,
                       "token_ids": tokens, "gaps": [round(gap, 6) for gap in gaps]})
        print(f"{prompt['id']:10} {len(tokens)} tokens, smallest gap {min(gaps):.5f}: "
              f"{oracle.decode(tokens)[:60]!r}", file=sys.stderr)

    text = (ROOT / TEXT).read_bytes()
    ids = oracle.encode(text.decode())
    assert 2000 <= len(ids) <= 2048, f"{len(ids)} tokens"
    prompt_ids = ids[200:500]
    positions = [0, 1, 7, 63, 64, 127, 128, 200, 255, 256, 299]
    result = {
        "model_sha256": hashlib.sha256(Path(args.model).read_bytes()).hexdigest(),
        "oracle": f"transformers float32, torch {torch.__version__.split('+')[0]}",
        "greedy": greedy,
        "top": {"prompt_ids": prompt_ids, "positions": positions,
                "logits": top_logits(oracle, prompt_ids, positions)},
        "perplexity": {"file": TEXT, "sha256": hashlib.sha256(text).hexdigest(),
                       "n_tokens": len(ids), "ids_head": ids[:16],
                       "mean_nll": mean_nll(oracle, ids)},
    }
    print(f"mean NLL {result['perplexity']['mean_nll']:.6f} over {len(ids)} tokens", file=sys.stderr)
    out = ROOT / "tests/golden/smollm2_greedy.json"
    lines = json.dumps(result, ensure_ascii=False, indent=1)
    out.write_text(compact(lines) + "\n")


def compact(text):
    """Numbers of a list on one line, so that a diff shows which list changed."""
    out, run = [], None
    for line in text.split("\n"):
        stripped = line.strip()
        number = stripped.rstrip(",").lstrip("-").replace(".", "").replace("e-", "").isdigit()
        if number and out:
            out[-1] += ("" if out[-1].endswith("[") else " ") + stripped
            run = True
        elif run and stripped.startswith("]"):
            out[-1] += stripped
            run = None
        else:
            out.append(line)
            run = None
    return "\n".join(out)


if __name__ == "__main__":
    main()
