#!/usr/bin/env python3
"""Draft heads over two of the tiny checkpoints, and what PyTorch computes with them.

    python tools/oracle/make_head_golden.py     # tests/golden/head/{llama,qwen3}

Every folder holds
    head.safetensors    one module, bf16, tap after in its metadata (the other is asked for in memory)
    ids.json            {"trunk": folder of the trunk, "ids": the text}
    rows.safetensors    for each tap T (after, before), f32:
        T.hidden [N, dim]    the trunk's hiddens of ids[0 .. N - 1]; row p goes with ids[p + 1]
      and for each tap type Y (bf16, f32) besides:
        T.Y.next [N + 3, dim], T.Y.logits [N + 3, V]
      Rows N .. N + 2 are the recycled depths 2 to 4 behind the last row, with the tokens that the
      text has there.

The layer is transformers' own: a model of the trunk's class with one layer, fed with what the merge
projection gives. The controls say how far the results move where a half is swapped or a tap taken
for the other.
"""

import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig
from transformers.utils import logging

from make_dense_golden import FAMILIES, GOLDEN, distance, fresh, write_json

N = 32
N_RECYCLED = 3
TRUNKS = {"llama": "llama/llama3", "qwen3": "qwen3/plain"}


class Trunk:
    def __init__(self, folder, family):
        self.config = AutoConfig.from_pretrained(folder)
        self.config._attn_implementation = "eager"
        self.family = family
        self.weights = {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
        self.model = family.model(self.config).eval()
        self.model.load_state_dict(self.weights)

    @torch.no_grad()
    def hiddens(self, ids):
        taken = {}
        hook = self.model.model.norm.register_forward_hook(
            lambda _, args, out: taken.update(before=args[0][0], after=out[0]))
        self.model(torch.tensor([ids]))
        hook.remove()
        return taken


def random_head(trunk, seed):
    rng = torch.Generator().manual_seed(seed)
    dim = trunk.config.hidden_size
    shapes = {"mtp.fc.weight": (dim, 2 * dim), "mtp.norm.weight": (dim,),
              "mtp.pre_fc_norm_embedding.weight": (dim,), "mtp.pre_fc_norm_hidden.weight": (dim,)}
    for name, value in trunk.weights.items():
        if name.startswith("model.layers.0."):
            shapes["mtp.layers.0." + name.removeprefix("model.layers.0.")] = tuple(value.shape)
    head = {}
    for name, shape in shapes.items():
        draw = torch.randn(shape, generator=rng)
        head[name] = (1 + 0.3 * draw if "norm" in name else 0.3 * draw).to(torch.bfloat16)
    return head


class Head:
    def __init__(self, trunk, tensors, tap, tap_type, hidden_first=False):
        self.trunk, self.tap, self.tap_type, self.hidden_first = trunk, tap, tap_type, hidden_first
        self.t = {name: value.float() for name, value in tensors.items()}
        one_layer = dict(trunk.config.to_dict(), num_hidden_layers=1)
        if one_layer.get("layer_types"):
            one_layer["layer_types"] = one_layer["layer_types"][:1]
        config = type(trunk.config).from_dict(one_layer)
        config._attn_implementation = "eager"
        self.model = trunk.family.model(config).eval().model
        own = {name.removeprefix("mtp."): value for name, value in self.t.items()
               if name.startswith("mtp.layers.0.")}
        own["norm.weight"] = self.t["mtp.norm.weight"]
        own["embed_tokens.weight"] = trunk.weights["model.embed_tokens.weight"]
        self.model.load_state_dict(own)

    def rms(self, x, weight):
        eps = self.trunk.config.rms_norm_eps
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight

    def merged(self, hidden, tokens):
        if self.tap_type == "bf16":
            hidden = hidden.to(torch.bfloat16).float()
        embedding = self.trunk.weights["model.embed_tokens.weight"][torch.tensor(tokens)]
        halves = [self.rms(embedding, self.t["mtp.pre_fc_norm_embedding.weight"]),
                  self.rms(hidden, self.t["mtp.pre_fc_norm_hidden.weight"])]
        if self.hidden_first:
            halves.reverse()
        return torch.cat(halves, -1) @ self.t["mtp.fc.weight"].T

    def layer(self, rows):
        taken = {}
        hook = self.model.norm.register_forward_hook(
            lambda _, args, out: taken.update(before=args[0][0], after=out[0]))
        self.model(inputs_embeds=rows[None])
        hook.remove()
        output = self.trunk.weights.get("lm_head.weight",
                                        self.trunk.weights["model.embed_tokens.weight"])
        return taken[self.tap], taken["after"] @ output.T

    @torch.no_grad()
    def run(self, hiddens, ids):
        rows = self.merged(hiddens[self.tap][:N], ids[1:N + 1])
        next_hidden, logits = self.layer(rows)
        for depth in range(N_RECYCLED):
            more = self.merged(next_hidden[-1:], ids[N + 1 + depth:N + 2 + depth])
            rows = torch.cat([rows, more])
            next_hidden, logits = self.layer(rows)
        return next_hidden, logits


def make(name, trunk_folder, seed):
    trunk = Trunk(GOLDEN / trunk_folder, FAMILIES[name])
    folder = fresh("head", name)
    rng = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, trunk.config.vocab_size, (N + 1 + N_RECYCLED,), generator=rng).tolist()
    hiddens = trunk.hiddens(ids)
    tensors = random_head(trunk, seed)
    save_file(tensors, folder / "head.safetensors", metadata={
        "format": "pt", "paceline.head": "1", "paceline.family": name, "paceline.tap": "after",
        "paceline.tap_type": "bf16", "paceline.modules": "1", "paceline.depths": "4"})
    write_json(folder / "ids.json", {"trunk": trunk_folder, "ids": ids})
    rows = {}
    for tap in ("after", "before"):
        rows[f"{tap}.hidden"] = hiddens[tap][:N].contiguous()
        for tap_type in ("bf16", "f32"):
            next_hidden, logits = Head(trunk, tensors, tap, tap_type).run(hiddens, ids)
            rows[f"{tap}.{tap_type}.next"] = next_hidden.contiguous()
            rows[f"{tap}.{tap_type}.logits"] = logits.contiguous()
    save_file(rows, folder / "rows.safetensors")

    right = rows["after.f32.logits"]
    swapped = Head(trunk, tensors, "after", "f32", hidden_first=True).run(hiddens, ids)[1]
    wrong_tap = Head(trunk, tensors, "after", "f32").run({"after": hiddens["before"]}, ids)[1]
    for what, logits in (("halves swapped", swapped), ("wrong tap", wrong_tap)):
        same = (logits.argmax(-1) == right.argmax(-1)).float().mean().item()
        print(f"{name}: {what}: distance {distance(logits, right):.3f}, same top-1 {same:.2f}")
        assert distance(logits, right) > 0.05 and same < 0.9


def main():
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    for seed, (name, trunk) in enumerate(TRUNKS.items()):
        make(name, trunk, 90 + seed)
    total = sum(f.stat().st_size for f in (GOLDEN / "head").rglob("*") if f.is_file())
    print(f"{total} bytes in {GOLDEN / 'head'}")
    assert total < 400_000


if __name__ == "__main__":
    sys.exit(main())
