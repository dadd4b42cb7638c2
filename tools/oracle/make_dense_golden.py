#!/usr/bin/env python3
"""Tiny random checkpoints of the dense families and the logits that transformers gives for them.

Regenerate with a virtual environment that holds torch, transformers, safetensors and gguf:

    python tools/oracle/make_dense_golden.py              # all of tests/golden/{llama,mistral,...}
    python tools/oracle/make_dense_golden.py gemma3 ...   # some families

Every folder FAMILY/VARIANT is one checkpoint:
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
import transformers
from safetensors.torch import load_file, save_file
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
POSITIONS = [0, 1, 2, 15, 16, 17, 63, 64, 65, 128, 199]
N_IDS = 200
# With a window the text goes on until its memory has been used twice.
LONG_POSITIONS = [0, 1, 7, 8, 9, 17, 64, 128, 199, 255, 256, 320, 329]
N_LONG_IDS = 330
SHAPE = dict(
    hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=6,
    num_key_value_heads=2, head_dim=16, vocab_size=131,
)
# Heads that are wider together than the model; one key head for two of them.
SMALL = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, head_dim=16, vocab_size=48,
)
# Quantised blocks want rows of 32.
SMALL_32 = dict(SMALL, hidden_size=32, intermediate_size=32)
LLAMA3 = dict(
    rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=64,  # so short that all three cases of the formula occur
)
LINEAR = dict(rope_type="linear", factor=4.0)


class Family:
    def __init__(self, name, classes, arch, keys, norms_plus_one=False):
        self.name, self.arch, self.keys, self.norms_plus_one = name, arch, keys, norms_plus_one
        self.config = getattr(transformers, classes.replace("ForCausalLM", "Config"))
        self.model = getattr(transformers, classes.replace("Text", ""))
        self.architecture = classes.replace("Text", "")


FAMILIES = {family.name: family for family in (
    Family("llama", "LlamaForCausalLM", "llama", ["attention_bias", "mlp_bias"]),
    Family("mistral", "MistralForCausalLM", "llama", ["sliding_window"]),
    Family("qwen2", "Qwen2ForCausalLM", "qwen2",
           ["use_sliding_window", "sliding_window", "max_window_layers", "layer_types"]),
    Family("qwen3", "Qwen3ForCausalLM", "qwen3",
           ["attention_bias", "use_sliding_window", "sliding_window", "max_window_layers",
            "layer_types"]),
    Family("gemma3", "Gemma3TextForCausalLM", "gemma3",
           ["attention_bias", "query_pre_attn_scalar", "sliding_window", "layer_types",
            "final_logit_softcapping", "attn_logit_softcapping"], norms_plus_one=True),
)}
OF_CONFIG = {family.config: family for family in FAMILIES.values()}


def family_of(config):
    return OF_CONFIG[type(config)]


def make_config(family="llama", shape=None, rope=None, theta=10000.0, **more):
    rope = dict(rope or {"rope_type": "default"}, rope_theta=theta)
    return FAMILIES[family].config(
        **dict(SHAPE if shape is None else dict(SHAPE, **shape)), max_position_embeddings=512,
        **dict(dict(rms_norm_eps=1e-5, rope_parameters=rope, bos_token_id=1, eos_token_id=[2, 3],
                    pad_token_id=None, tie_word_embeddings=False), **more),
    )


def random_weights(config, seed, stored=torch.float32, small=False):
    """Weights under their file names. Norms and biases are random too: they start at 1 and 0."""
    rng = torch.Generator().manual_seed(seed)
    family = family_of(config)
    model = family.model(config)
    weights = {}
    for name, value in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        draw = torch.randn(value.shape, generator=rng)
        if "norm" in name:
            draw = 0.3 * draw if family.norms_plus_one else 1.0 + 0.3 * draw
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


def fresh(family, name):
    folder = GOLDEN / family / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def config_json(config, stored, old_spelling=None):
    """config.json as transformers 5 writes it, or as releases before it did."""
    d = config.to_dict()
    family = family_of(config)
    act = "hidden_activation" if family.name == "gemma3" else "hidden_act"
    keep = [
        "bos_token_id", "eos_token_id", "head_dim", act, "hidden_size", "initializer_range",
        "intermediate_size", "max_position_embeddings", "model_type", "num_attention_heads",
        "num_hidden_layers", "num_key_value_heads", "rms_norm_eps", "tie_word_embeddings",
        "vocab_size", *family.keys,
    ]
    out = {"architectures": [family.architecture], **{key: d[key] for key in keep}}
    type_name = str(stored).removeprefix("torch.")
    if old_spelling is None:
        out["dtype"] = type_name
        out["rope_parameters"] = config.rope_parameters
        return dict(sorted(out.items()))
    out["torch_dtype"] = type_name
    rope = dict(config.rope_parameters)
    if family.name == "gemma3":
        del out["layer_types"]
        out["sliding_window_pattern"] = config._sliding_window_pattern
        out["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = dict(rope["full_attention"])
    out["rope_theta"] = rope.pop("rope_theta")
    kind = rope.pop("rope_type")
    out["rope_scaling"] = None if kind == "default" else {old_spelling: kind, **rope}
    return dict(sorted(out.items()))


@torch.no_grad()
def logits_of(model, ids):
    rows = model(torch.tensor([ids]), use_cache=False).logits[0]
    assert rows.dtype == torch.float32
    return rows[positions_of(ids)].contiguous()


def positions_of(ids):
    return POSITIONS if len(ids) == N_IDS else LONG_POSITIONS


def load(folder, model_class):
    return model_class.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()


def random_ids(seed, vocab, n=N_IDS):
    return [int(i) for i in np.random.default_rng(seed).integers(0, vocab, n)]


def write_golden(folder, ids, logits):
    (folder / "ids.json").write_text(
        json.dumps({"ids": ids, "positions": positions_of(ids)}) + "\n")
    save_file({"logits": logits}, folder / "logits.safetensors")


def distance(a, b):
    return float((a - b).abs().max() / b.abs().max())


def report(name, logits, **controls):
    shown = ", ".join(f"{key} {value:.1e}" for key, value in controls.items())
    print(f"{name:24} largest logit {float(logits.abs().max()):.3f}; control: {shown or 'none'}")
    for key, value in controls.items():
        assert value > 3e-3, f"{name}: {key} would go unnoticed"


def run(config, weights, ids, ignored=(".bias",)):
    """Logits of these weights under a config, which may leave some of them out."""
    config._attn_implementation = "eager"
    model = family_of(config).model(config).eval()
    missing, unexpected = model.load_state_dict(
        {key: value.float() for key, value in weights.items()}, strict=False)
    assert all(key.endswith(ignored) for key in unexpected), unexpected
    assert set(missing) <= {"lm_head.weight"}, missing
    if config.tie_word_embeddings:
        model.tie_weights()
    return logits_of(model, ids)


def altered(folder, config, ids):
    """Logits of the written weights under another config."""
    weights = {}
    for file in folder.glob("model*.safetensors"):
        weights.update(load_file(file))
    return run(config, weights, ids)


def safetensors_variant(name, config, seed, stored=torch.float32, old_spelling=None, n_shards=1,
                        small=False, extra=None, controls=None, n_ids=N_IDS):
    family = family_of(config)
    folder = fresh(family.name, name)
    weights = random_weights(config, seed, stored, small)
    weights.update(extra(weights) if extra else {})
    write_safetensors(folder, weights, n_shards)
    write_json(folder / "config.json", config_json(config, stored, old_spelling))
    ids = random_ids(seed, config.vocab_size, n_ids)
    logits = logits_of(load(folder, family.model), ids)
    write_golden(folder, ids, logits)
    report(f"{family.name}/{name}", logits, **{
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
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
GEMMA_NAMES = {
    "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def gguf_name(family, name):
    names = dict(GGUF_NAMES, **(GEMMA_NAMES if family.name == "gemma3" else {}))
    if name in names:
        return names[name]
    _, _, layer, rest = name.split(".", 3)
    module, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{names[module]}.{kind}"


def gguf_metadata(writer, family, config):
    arch = family.arch
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
    if arch == "gemma3":
        writer.add_sliding_window(config.sliding_window)
        writer.add_uint32("gemma3.attention.sliding_window_pattern", config._sliding_window_pattern)
        writer.add_float32("gemma3.rope.freq_base_swa", rope["sliding_attention"]["rope_theta"])
        rope = rope["full_attention"]
    writer.add_rope_freq_base(rope["rope_theta"])
    if arch == "llama":
        writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "llama3":
        factors = rope_freqs(rope, rope["rope_theta"], config.head_dim)
        writer.add_tensor("rope_freqs.weight", factors)


def gguf_variant(name, config, seed, types, n_ids=N_IDS):
    """types: GGUF type of a matrix by the last part of its module's name; "": of all others."""
    family = family_of(config)
    folder = fresh(family.name, name)
    writer = gguf.GGUFWriter(folder / "model.gguf", family.arch)
    writer.add_name(f"paceline test model {name}")
    gguf_metadata(writer, family, config)

    read_back = {}
    for key, value in random_weights(config, seed).items():
        data = value.numpy()
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(
            key.split(".")[-2]) if family.arch == "llama" else None
        if heads:
            data = permute(data, heads)
        kind = types.get(key.split(".")[-2], types.get("", "F32")) if data.ndim == 2 else "F32"
        kind = gguf.GGMLQuantizationType[kind]
        one = 1 if family.norms_plus_one and "norm" in key else 0
        packed = gguf.quantize(np.ascontiguousarray(data + np.float32(one)), kind)
        writer.add_tensor(gguf_name(family, key), packed, raw_dtype=kind)
        values = gguf.dequantize(packed, kind).astype(np.float32).reshape(data.shape)
        read_back[key] = torch.from_numpy(
            np.ascontiguousarray(unpermute(values, heads) if heads else values)) - one
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    ids = random_ids(seed, config.vocab_size, n_ids)
    logits = run(config, read_back, ids)
    write_golden(folder, ids, logits)
    permuted = dict(read_back)
    for key in permuted:
        if ".q_proj." in key:
            permuted[key] = torch.from_numpy(
                np.ascontiguousarray(permute(permuted[key].numpy(), config.num_attention_heads)))
        if ".k_proj." in key:
            permuted[key] = torch.from_numpy(
                np.ascontiguousarray(permute(permuted[key].numpy(), config.num_key_value_heads)))
    controls = {"rows of q and k in the other order": distance(run(config, permuted, ids), logits)}
    if family.norms_plus_one:
        twice = {key: value + 1 if "norm" in key else value for key, value in read_back.items()}
        controls["one added twice"] = distance(run(config, twice, ids), logits)
    report(f"{family.name}/{name}", logits, **controls)


def make_llama():
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
    weights = load_file(GOLDEN / "llama" / "tied_own_head" / "model.safetensors")
    own = make_config()
    own._attn_implementation = "eager"
    model = FAMILIES["llama"].model(own).eval()
    model.load_state_dict(weights)
    ids = random_ids(7, 131)
    assert torch.equal(logits_of(model, ids),
                       load_file(GOLDEN / "llama" / "tied_own_head" / "logits.safetensors")["logits"])

    gguf_variant("gguf_f32", make_config(rope=LLAMA3), 8, {})
    # Blocks of 32 want row lengths that are multiples of it. The head is the embedding table.
    quant = dict(hidden_size=96, intermediate_size=128, head_dim=32)
    gguf_variant("gguf_quant", make_config(shape=quant, rope=LINEAR, tie_word_embeddings=True), 9, {
        "embed_tokens": "Q8_0", "q_proj": "Q4_1", "k_proj": "Q4_1", "v_proj": "Q8_0",
        "o_proj": "Q4_0", "gate_proj": "Q4_1", "up_proj": "BF16", "down_proj": "F16"})


def make_mistral():
    def config(**more):
        return make_config("mistral", SMALL, **dict(dict(sliding_window=24), **more))
    safetensors_variant("window", config(), 20, torch.bfloat16, n_ids=N_LONG_IDS, controls={
        "a window one shorter": config(sliding_window=23),
        "a window one longer": config(sliding_window=25)})
    # In GGUF it is a llama, without its window.
    gguf_variant("gguf", make_config("mistral", SMALL_32, sliding_window=None), 22, {
        "": "Q8_0", "q_proj": "F16", "down_proj": "BF16"})


def make_qwen2():
    def config(**more):
        return make_config("qwen2", SMALL, **dict(
            dict(use_sliding_window=False, sliding_window=16, max_window_layers=1), **more))
    safetensors_variant("biases", config(tie_word_embeddings=True), 30, torch.bfloat16, controls={
        "another theta": config(tie_word_embeddings=True, theta=20000.0)})
    weights = load_file(GOLDEN / "qwen2" / "biases" / "model.safetensors")
    gone = {key: 0 * value if key.endswith(".bias") else value for key, value in weights.items()}
    ids = random_ids(30, SMALL["vocab_size"])
    assert distance(run(config(tie_word_embeddings=True), gone, ids),
                    load_file(GOLDEN / "qwen2" / "biases" / "logits.safetensors")["logits"]) > 3e-3
    window = dict(use_sliding_window=True)
    safetensors_variant("window", config(**window), 31, torch.bfloat16, n_ids=N_LONG_IDS, controls={
        "the window left out": config(),
        "windows from another layer on": config(max_window_layers=0, **window)})
    gguf_variant("gguf", make_config("qwen2", SMALL_32, tie_word_embeddings=True), 32, {
        "": "Q8_0", "q_proj": "F16", "v_proj": "Q4_1", "gate_proj": "Q4_0"})


def make_qwen3():
    def config(**more):
        return make_config("qwen3", SMALL, theta=1e6, **dict(dict(use_sliding_window=False), **more))
    safetensors_variant("plain", config(), 40, torch.bfloat16, controls={
        "another eps": config(rms_norm_eps=1e-2)})
    safetensors_variant("biases", config(attention_bias=True, tie_word_embeddings=True), 41,
                        torch.bfloat16, "rope_type", controls={
                            "biases ignored": config(tie_word_embeddings=True)})
    gguf_variant("gguf", make_config("qwen3", SMALL_32, theta=1e6), 42, {
        "": "Q8_0", "q_proj": "Q4_1", "o_proj": "F16"})


def make_gemma3():
    def config(pattern=3, base=1e5, local=1e4, rope=None, **more):
        ropes = {"full_attention": dict(rope or {"rope_type": "default"}, rope_theta=base),
                 "sliding_attention": {"rope_type": "default", "rope_theta": local}}
        return FAMILIES["gemma3"].config(**dict(SMALL, max_position_embeddings=512, **dict(dict(
            num_hidden_layers=3, rope_parameters=ropes, sliding_window=8, query_pre_attn_scalar=24,
            sliding_window_pattern=pattern, rms_norm_eps=1e-5, bos_token_id=2, eos_token_id=1,
            pad_token_id=0, tie_word_embeddings=True), **more)))
    controls = {
        "a window one shorter": config(sliding_window=7),
        "a window one longer": config(sliding_window=9),
        "scale of the head's width": config(query_pre_attn_scalar=16),
        "one rotation for all": config(local=1e5),
        "another pattern": config(pattern=2)}
    safetensors_variant("objects", config(), 50, torch.bfloat16, n_ids=N_LONG_IDS,
                        controls=controls)
    short = dict(pattern=2)
    capped = dict(rope=LINEAR, final_logit_softcapping=4.0, **short)
    safetensors_variant("flat", config(**capped), 51, torch.bfloat16, "rope_type",
                        n_ids=N_LONG_IDS, controls={
                            "no cap": config(rope=LINEAR, **short),
                            "no scaling": config(final_logit_softcapping=4.0, **short)})
    # No scale of its own can be said there.
    gguf_variant("gguf", config(**dict(SMALL_32, query_pre_attn_scalar=16,
                                       pattern=2, rope=LINEAR)), 52, {
        "": "Q8_0", "q_proj": "F16", "down_proj": "Q4_1"},
        n_ids=N_LONG_IDS)
    make_multimodal(config(query_pre_attn_scalar=16, **short))


def make_multimodal(text):
    """The text part of a checkpoint that can see, with the keys left out that releases leave out."""
    vision = transformers.SiglipVisionConfig(
        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, image_size=8,
        patch_size=4)
    config = transformers.Gemma3Config(
        text_config=text, vision_config=vision, mm_tokens_per_image=1, image_token_index=47,
        boi_token_index=46, eoi_token_index=45)
    config._attn_implementation = "eager"
    folder = fresh("gemma3", "multimodal")
    torch.manual_seed(53)
    model = transformers.Gemma3ForConditionalGeneration(config).eval()
    weights = random_weights(text, 53, torch.bfloat16)
    ours = {key.replace("model.", "model.language_model.", 1): value.float()
            for key, value in weights.items()}
    missing, unexpected = model.load_state_dict(ours, strict=False)
    assert not unexpected, unexpected
    assert not [key for key in missing if "language_model.layers" in key], missing
    model.tie_weights()
    model.save_pretrained(folder)
    names = load_file(folder / "model.safetensors")
    assert any(key.startswith("language_model.model.") for key in names), sorted(names)[:5]
    # Two of the tensors that belong to what sees; a decoder of text names them and goes on.
    vision_part = {key: value.to(torch.bfloat16).contiguous() for key, value in names.items()
                   if key.endswith(("mm_soft_emb_norm.weight", "post_layernorm.weight"))}
    assert len(vision_part) == 2, vision_part.keys()
    save_file({**{"language_model." + key: value for key, value in weights.items()}, **vision_part},
              folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "generation_config.json").unlink()
    written = config_json(text, torch.bfloat16)
    for key in ("tie_word_embeddings", "attention_bias", "attn_logit_softcapping", "dtype",
                "architectures", "final_logit_softcapping", "hidden_activation"):
        del written[key]
    write_json(folder / "config.json", {
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
        "eos_token_id": [1], "image_token_index": 47, "boi_token_index": 46, "eoi_token_index": 45,
        "mm_tokens_per_image": 1, "dtype": "bfloat16", "tie_word_embeddings": True,
        "text_config": written, "vision_config": {
            key: vision.to_dict()[key] for key in (
                "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                "image_size", "patch_size", "model_type")}})
    ids = random_ids(53, 45, N_LONG_IDS)
    logits = logits_of(load(folder, transformers.Gemma3ForConditionalGeneration), ids)
    write_golden(folder, ids, logits)
    report("gemma3/multimodal", logits)
    assert distance(run(text, weights, ids), logits) < 1e-5


def main(names):
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    makers = {"llama": make_llama, "mistral": make_mistral, "qwen2": make_qwen2,
              "qwen3": make_qwen3, "gemma3": make_gemma3}
    for name in names or makers:
        makers[name]()
        total = sum(f.stat().st_size for f in (GOLDEN / name).rglob("*") if f.is_file())
        print(f"{total} bytes in {GOLDEN / name}")
        assert total < (2_500_000 if name == "llama" else 110_000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
