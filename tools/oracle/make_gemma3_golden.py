#!/usr/bin/env python3
"""What transformers in float32 makes of Gemma 3 270M (the Q4_K_M file, dequantised).

    python tools/oracle/make_gemma3_golden.py "$(script/fetch gemma3-270m | tail -n 1)"

writes tests/golden/gemma3_greedy.json: for each of five raw prompts {"prompt", "prompt_ids",
"token_ids", "gaps"}: 64 greedy tokens and the gap between the two best logits at each. A text is
held to these ids as far as the gaps are wider than the rounding of either side.

The last prompt is longer than the sliding window of 512.
"""

import hashlib
import json
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import AutoTokenizer, Gemma3ForCausalLM, Gemma3TextConfig

ROOT = Path(__file__).resolve().parents[2]
TEXT = ROOT / "tests/golden/perplexity_text.txt"
N_TOKENS = 64
PROMPTS = [
    "Cyclists ride in a line because",
    "The capital of France is",
    "def fibonacci(n):\n",
    "1, 2, 3, 4, 5, 6, 7,",
]
LAYER_NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
NAMES = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}


def load(path):
    reader = gguf.GGUFReader(path)

    def key(name, default=None):
        field = reader.get_field(f"gemma3.{name}")
        return default if field is None else field.contents()

    embedding = next(t for t in reader.tensors if t.name == "token_embd.weight")
    config = Gemma3TextConfig(
        hidden_size=key("embedding_length"), intermediate_size=key("feed_forward_length"),
        num_hidden_layers=key("block_count"), num_attention_heads=key("attention.head_count"),
        num_key_value_heads=key("attention.head_count_kv"), head_dim=key("attention.key_length"),
        query_pre_attn_scalar=key("attention.key_length"), vocab_size=int(embedding.shape[1]),
        max_position_embeddings=key("context_length"),
        rms_norm_eps=key("attention.layer_norm_rms_epsilon"),
        sliding_window=key("attention.sliding_window"), sliding_window_pattern=6,
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": key("rope.freq_base")},
            "sliding_attention": {"rope_type": "default",
                                  "rope_theta": key("rope.freq_base_swa", 10000.0)}})
    config._attn_implementation = "eager"
    weights = {}
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        values = values.reshape([int(n) for n in reversed(tensor.shape)])
        name = NAMES.get(tensor.name)
        if name is None:
            _, layer, module, kind = tensor.name.split(".")
            name = f"model.layers.{layer}.{LAYER_NAMES[module]}.{kind}"
        if tensor.name.endswith("norm.weight"):
            values = values - 1  # the file holds 1 + w
        weights[name] = torch.from_numpy(np.ascontiguousarray(values))
    model = Gemma3ForCausalLM(config).eval()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not unexpected, (missing, unexpected)
    model.tie_weights()
    return model


@torch.no_grad()
def greedy(model, ids, n):
    """Ids that follow, and the gap between the two best logits at each."""
    out, gaps = [], []
    step, past = torch.tensor([ids]), None
    for _ in range(n):
        result = model(step, cache=past, use_cache=True)
        past, row = result.cache, result.logits[0, -1]
        top = torch.topk(row, 2).values
        token = int(torch.nonzero(row == top[0])[0])  # ties go to the lowest id
        out.append(token)
        gaps.append(round(float(top[0] - top[1]), 6))
        step = torch.tensor([[token]])
    return out, gaps


def main(path):
    torch.set_num_threads(2)
    path = Path(path)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = load(path)
    results = []
    for prompt in PROMPTS + [TEXT.read_text()[:3000]]:
        ids = tokenizer.encode(prompt)
        assert ids[0] == 2, ids[:3]  # <bos>
        tokens, gaps = greedy(model, ids, N_TOKENS)
        shown = prompt if len(prompt) < 100 else f"the first 3000 characters of {TEXT.name}"
        results.append({"prompt": shown, "prompt_ids": ids, "token_ids": tokens, "gaps": gaps})
        print(f"{len(ids)} ids, smallest gap {min(gaps)}: {tokenizer.decode(tokens)!r}",
              file=sys.stderr)
    assert len(results[-1]["prompt_ids"]) > 600
    out = {"model_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
           "oracle": f"transformers float32, torch {torch.__version__.split('+')[0]}"}
    lines = ",\n".join("  " + json.dumps(result) for result in results)
    (ROOT / "tests/golden/gemma3_greedy.json").write_text(
        json.dumps(out, indent=1)[:-2] + ',\n "greedy": [\n' + lines + "\n ]\n}\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
