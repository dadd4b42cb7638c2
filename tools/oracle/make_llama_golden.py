#!/usr/bin/env python3
"""Tiny random Llama checkpoints and the logits that transformers gives for them.

Regenerate with a virtual environment that holds torch, transformers, safetensors and gguf:

    python tools/oracle/make_llama_golden.py            # writes tests/golden/llama/

Every folder is one variant:
    config.json, model*.safetensors   the checkpoint (or model.gguf instead)
    ids.json                          {"ids": [...], "positions": [...]}
    logits.safetensors                "logits" f32 [n_positions, V]: row i holds the logits after
                                      ids[0 .. positions[i]] have been read (position 0 is the first)

Logits come from eager attention in float32. The models are loaded anew from the written files, since
casting a module would round its RoPE frequencies too. For each variant a control checks that the
mistake which it is there to catch would move the logits visibly.
"""

import json
import math
import shutil
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "llama"
POSITIONS = [0, 1, 2, 15, 16, 17, 63, 64, 65, 128, 199]
N_IDS = 200
SHAPE = dict(
    hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=6,
    num_key_value_heads=2, head_dim=16, vocab_size=131,
)
LLAMA3 = dict(
    rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=64,  # so short that all three cases of the formula occur
)
LINEAR = dict(rope_type="linear", factor=4.0)


def make_config(shape=None, rope=None, theta=10000.0, **more):
    rope = dict(rope or {"rope_type": "default"}, rope_theta=theta)
    return LlamaConfig(
        **dict(SHAPE, **(shape or {})), max_position_embeddings=512, rms_norm_eps=1e-5,
        rope_parameters=rope, bos_token_id=1, eos_token_id=[2, 3], pad_token_id=None,
        **dict(dict(tie_word_embeddings=False), **more),
    )


def random_weights(config, seed, stored=torch.float32, small=False):
    """Weights under their file names. Norms and biases are random too: they start at 1 and 0."""
    rng = torch.Generator().manual_seed(seed)
    model = LlamaForCausalLM(config)
    weights = {}
    for name, value in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        draw = torch.randn(value.shape, generator=rng)
        if "norm" in name:
            draw = 1.0 + 0.3 * draw
        elif name.endswith("bias"):
            draw = 0.3 * draw
        elif "embed_tokens" in name:
            draw = draw * (0.003 if small else 1.0)
        elif "o_proj" in name or "down_proj" in name:
            draw = draw * (0.0005 if small else 0.15)
        else:
            draw = 0.2 * draw
        weights[name] = draw.to(stored).contiguous()
    return weights


def write_safetensors(folder, weights, n_shards=1):
    if n_shards == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(weights)
    index = {"metadata": {"total_size": 0}, "weight_map": {}}
    for shard in range(n_shards):
        file = f"model-{shard + 1:05d}-of-{n_shards:05d}.safetensors"
        part = {name: weights[name] for name in names[shard::n_shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        index["metadata"]["total_size"] += sum(t.numel() * t.element_size() for t in part.values())
        index["weight_map"].update({name: file for name in part})
    index["weight_map"] = dict(sorted(index["weight_map"].items()))
    write_json(folder / "model.safetensors.index.json", index)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def fresh(name):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def config_json(config, stored, old_spelling=None):
    """config.json as transformers 5 writes it, or as releases before it did."""
    d = config.to_dict()
    keep = [
        "attention_bias", "bos_token_id", "eos_token_id", "head_dim", "hidden_act", "hidden_size",
        "initializer_range", "intermediate_size", "max_position_embeddings", "mlp_bias", "model_type",
        "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "rms_norm_eps",
        "tie_word_embeddings", "vocab_size",
    ]
    out = {"architectures": ["LlamaForCausalLM"], **{key: d[key] for key in keep}}
    type_name = str(stored).removeprefix("torch.")
    if old_spelling is None:
        out["dtype"] = type_name
        out["rope_parameters"] = config.rope_parameters
    else:
        rope = dict(config.rope_parameters)
        out["torch_dtype"] = type_name
        out["rope_theta"] = rope.pop("rope_theta")
        kind = rope.pop("rope_type")
        out["rope_scaling"] = None if kind == "default" else {old_spelling: kind, **rope}
    return dict(sorted(out.items()))


@torch.no_grad()
def logits_of(model, ids):
    rows = model(torch.tensor([ids]), use_cache=False).logits[0]
    assert rows.dtype == torch.float32
    return rows[POSITIONS].contiguous()


def load(folder):
    return LlamaForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()


def random_ids(seed, vocab):
    return [int(i) for i in np.random.default_rng(seed).integers(0, vocab, N_IDS)]


def write_golden(folder, ids, logits):
    (folder / "ids.json").write_text(json.dumps({"ids": ids, "positions": POSITIONS}) + "\n")
    save_file({"logits": logits}, folder / "logits.safetensors")


def distance(a, b):
    return float((a - b).abs().max() / b.abs().max())


def report(name, logits, **controls):
    shown = ", ".join(f"{key} {value:.1e}" for key, value in controls.items())
    print(f"{name:16} largest logit {float(logits.abs().max()):.3f}; control: {shown or 'none'}")
    for key, value in controls.items():
        assert value > 3e-3, f"{name}: {key} would go unnoticed"


def altered(folder, config, ids):
    """Logits of the same weights under another config."""
    weights = {}
    for file in folder.glob("model*.safetensors"):
        weights.update(load_file(file))
    config._attn_implementation = "eager"
    model = LlamaForCausalLM(config).eval()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert all(key.endswith(".bias") for key in unexpected), unexpected
    assert set(missing) <= {"lm_head.weight"}, missing
    if config.tie_word_embeddings:
        model.tie_weights()
    return logits_of(model, ids)


def safetensors_variant(name, config, seed, stored=torch.float32, old_spelling=None, n_shards=1,
                        small=False, extra=None, controls=None):
    folder = fresh(name)
    weights = random_weights(config, seed, stored, small)
    weights.update(extra(weights) if extra else {})
    write_safetensors(folder, weights, n_shards)
    write_json(folder / "config.json", config_json(config, stored, old_spelling))
    ids = random_ids(seed, config.vocab_size)
    logits = logits_of(load(folder), ids)
    write_golden(folder, ids, logits)
    report(name, logits, **{
        key: distance(altered(folder, other, ids), logits) for key, other in (controls or {}).items()
    })
    return logits


def permute(rows, n_heads):
    """Hugging Face row order to that of `llama` GGUF files: halves of a head become pairs."""
    return (rows.reshape(n_heads, 2, rows.shape[0] // n_heads // 2, *rows.shape[1:])
            .swapaxes(1, 2).reshape(rows.shape))


def unpermute(rows, n_heads):
    return (rows.reshape(n_heads, rows.shape[0] // n_heads // 2, 2, *rows.shape[1:])
            .swapaxes(1, 2).reshape(rows.shape))


def rope_freqs(rope, theta, head_dim):
    """Divisors of the frequencies, the tensor by which GGUF files carry `llama3` scaling."""
    factors = []
    for i in range(head_dim // 2):
        wavelength = 2 * math.pi * theta ** (2 * i / head_dim)
        length = rope["original_max_position_embeddings"]
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        if wavelength < length / high:
            factors.append(1.0)
        elif wavelength > length / low:
            factors.append(rope["factor"])
        else:
            smooth = (length / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    assert min(factors) == 1.0 and max(factors) == rope["factor"] and len(set(factors)) > 2
    return np.array(factors, np.float32)


GGUF_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    if name in GGUF_NAMES:
        return GGUF_NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    module, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{GGUF_NAMES[module]}.{kind}"


def gguf_variant(name, config, seed, types):
    """types: GGUF type of a matrix by the last part of its module's name; all else is F32."""
    folder = fresh(name)
    writer = gguf.GGUFWriter(folder / "model.gguf", "llama")
    writer.add_name(f"paceline test model {name}")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "llama3":
        factors = rope_freqs(rope, rope["rope_theta"], config.head_dim)
        writer.add_tensor("rope_freqs.weight", factors)

    read_back = {}
    for key, value in random_weights(config, seed).items():
        data = value.numpy()
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(
            key.split(".")[-2])
        if heads:
            data = permute(data, heads)
        kind = types.get(key.split(".")[-2], "F32") if data.ndim == 2 else "F32"
        kind = gguf.GGMLQuantizationType[kind]
        packed = gguf.quantize(np.ascontiguousarray(data), kind)
        writer.add_tensor(gguf_name(key), packed, raw_dtype=kind)
        values = gguf.dequantize(packed, kind).astype(np.float32).reshape(data.shape)
        read_back[key] = torch.from_numpy(
            np.ascontiguousarray(unpermute(values, heads) if heads else values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    def run(weights):
        config._attn_implementation = "eager"
        model = LlamaForCausalLM(config).eval()
        missing, unexpected = model.load_state_dict(weights, strict=False)
        assert not unexpected and set(missing) <= {"lm_head.weight"}
        if config.tie_word_embeddings:
            model.tie_weights()
        return logits_of(model, ids)

    ids = random_ids(seed, config.vocab_size)
    logits = run(read_back)
    write_golden(folder, ids, logits)
    permuted = dict(read_back)
    for key in permuted:
        if ".q_proj." in key:
            permuted[key] = torch.from_numpy(
                np.ascontiguousarray(permute(permuted[key].numpy(), config.num_attention_heads)))
        if ".k_proj." in key:
            permuted[key] = torch.from_numpy(
                np.ascontiguousarray(permute(permuted[key].numpy(), config.num_key_value_heads)))
    report(name, logits, rows_left_permuted=distance(run(permuted), logits))


def main():
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    plain = make_config()
    safetensors_variant("plain", plain, 1, controls={
        "another theta": make_config(theta=20000.0)})

    small = make_config(tie_word_embeddings=True)
    other_eps = make_config(tie_word_embeddings=True)
    other_eps.rms_norm_eps = 1e-6
    safetensors_variant("tied_small", small, 2, small=True, controls={"eps 1e-6": other_eps})

    # The same weights four times: two kinds of scaling, two spellings of each.
    llama3 = make_config(rope=LLAMA3)
    linear = make_config(rope=LINEAR)
    controls = {"scaling ignored": make_config()}
    new = safetensors_variant("llama3", llama3, 3, torch.bfloat16, controls=controls)
    old = safetensors_variant("llama3_old", llama3, 3, torch.bfloat16, "rope_type", controls=controls)
    assert torch.equal(new, old)
    new = safetensors_variant("linear", linear, 3, torch.bfloat16, controls=controls)
    old = safetensors_variant("linear_old", linear, 3, torch.bfloat16, "type", controls=controls)
    assert torch.equal(new, old)

    bias = make_config(attention_bias=True, mlp_bias=True)
    safetensors_variant("bias", bias, 4, controls={
        "attention biases ignored": make_config(mlp_bias=True),
        "feed-forward biases ignored": make_config(attention_bias=True)})

    safetensors_variant("f16", make_config(theta=500000.0), 5, torch.float16, controls={
        "another theta": make_config()})
    safetensors_variant("sharded", plain, 6, torch.bfloat16, n_shards=3, controls={
        "another theta": make_config(theta=20000.0)})

    # The config says tied, the file holds a head of its own: the file is right.
    rng = torch.Generator().manual_seed(70)
    head = {"lm_head.weight": (0.2 * torch.randn(131, 48, generator=rng)).to(torch.bfloat16)}
    tied = make_config(tie_word_embeddings=True)
    safetensors_variant("tied_own_head", tied, 7, torch.bfloat16, extra=lambda _: head)
    weights = load_file(OUT / "tied_own_head" / "model.safetensors")
    own = make_config()
    own._attn_implementation = "eager"
    model = LlamaForCausalLM(own).eval()
    model.load_state_dict(weights)
    ids = random_ids(7, 131)
    assert torch.equal(logits_of(model, ids),
                       load_file(OUT / "tied_own_head" / "logits.safetensors")["logits"])

    gguf_variant("gguf_f32", make_config(rope=LLAMA3), 8, {})
    # Blocks of 32 want row lengths that are multiples of it. The head is the embedding table.
    quant = dict(hidden_size=96, intermediate_size=128, head_dim=32)
    gguf_variant("gguf_quant", make_config(shape=quant, rope=LINEAR, tie_word_embeddings=True), 9, {
        "embed_tokens": "Q8_0", "q_proj": "Q4_1", "k_proj": "Q4_1", "v_proj": "Q8_0",
        "o_proj": "Q4_0", "gate_proj": "Q4_1", "up_proj": "BF16", "down_proj": "F16"})

    total = sum(f.stat().st_size for f in OUT.rglob("*") if f.is_file())
    print(f"{total} bytes in {OUT}")
    assert total < 2_500_000


if __name__ == "__main__":
    sys.exit(main())
