"""Writes tests/golden/train_head.safetensors: tiny draft heads, their loss and every gradient, as
PyTorch's autograd computes them in float64.

    python tools/oracle/make_train_golden.py tests/golden/train_head.safetensors

Tensors of case C are named C/...: parameters C/w/NAME and gradients C/g/NAME under their names in a
head's file, rows C/embedding, C/hidden, C/final_hidden, C/words, C/hard, results C/y/DEPTH and
C/loss (a depth each). Metadata C is a JSON object with the sizes and switches.
"""

import json
import sys

import torch
from safetensors.torch import save_file

torch.set_default_dtype(torch.float64)
BETA = 0.6

CASES = {
    "served": dict(mask="served", tap="after", targets="soft", modules=1, depths=3, heads=2,
                   kv_heads=1, head_dim=8, biases=False, qk_norms=False),
    "recipe": dict(mask="recipe", tap="before", targets="hard", modules=1, depths=3, heads=4,
                   kv_heads=2, head_dim=6, biases=True, qk_norms=True),
    "modules": dict(mask="served", tap="after", targets="mixed", modules=2, depths=4, heads=3,
                    kv_heads=3, head_dim=4, biases=True, qk_norms=False),
}
DIM, HIDDEN_DIM, WORDS, EPS, THETA = 16, 24, 20, 1e-5, 10000.0
SEGMENTS = [7, 5, 2, 1]


def parameter_shapes(case):
    q, kv = case["heads"] * case["head_dim"], case["kv_heads"] * case["head_dim"]
    for k in range(case["modules"]):
        prefix = "mtp." if k == 0 else f"mtp.modules.{k}."
        layer = prefix + "layers.0."
        yield prefix + "fc.weight", (DIM, 2 * DIM)
        yield prefix + "pre_fc_norm_embedding.weight", (DIM,)
        yield prefix + "pre_fc_norm_hidden.weight", (DIM,)
        yield layer + "input_layernorm.weight", (DIM,)
        for name, rows, cols in (("self_attn.q_proj", q, DIM), ("self_attn.k_proj", kv, DIM),
                                 ("self_attn.v_proj", kv, DIM), ("self_attn.o_proj", DIM, q)):
            yield layer + name + ".weight", (rows, cols)
            if case["biases"]:
                yield layer + name + ".bias", (rows,)
        if case["qk_norms"]:
            yield layer + "self_attn.q_norm.weight", (case["head_dim"],)
            yield layer + "self_attn.k_norm.weight", (case["head_dim"],)
        yield layer + "post_attention_layernorm.weight", (DIM,)
        for name, rows, cols in (("mlp.gate_proj", HIDDEN_DIM, DIM), ("mlp.up_proj", HIDDEN_DIM, DIM),
                                 ("mlp.down_proj", DIM, HIDDEN_DIM)):
            yield layer + name + ".weight", (rows, cols)
            if case["biases"]:
                yield layer + name + ".bias", (rows,)
        yield prefix + "norm.weight", (DIM,)


def rms(x, weight):
    return x * (x.pow(2).mean(-1, keepdim=True) + EPS).rsqrt() * weight


def rope(x, positions):  # (rows, heads, head_dim)
    half = x.shape[-1] // 2
    frequencies = THETA ** (-2 * torch.arange(half) / x.shape[-1])
    angles = positions[:, None] * frequencies
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def run(case, w, embedding, hidden):
    """y of every depth for one sequence; embedding[r] is of token r + 1, with rows behind the end."""
    rows, ys, keys, state = hidden.shape[0], [], [], hidden
    for depth in range(1, case["depths"] + 1):
        module = min(depth, case["modules"]) - 1
        prefix = "mtp." if module == 0 else f"mtp.modules.{module}."
        layer = prefix + "layers.0."

        def linear(x, name):
            y = x @ w[layer + name + ".weight"].T
            return y + w[layer + name + ".bias"] if layer + name + ".bias" in w else y

        base = depth if case["mask"] == "recipe" else min(depth, case["modules"])
        x = torch.cat([rms(embedding[depth - 1:depth - 1 + rows],
                           w[prefix + "pre_fc_norm_embedding.weight"]),
                       rms(state, w[prefix + "pre_fc_norm_hidden.weight"])], -1)
        x = x @ w[prefix + "fc.weight"].T
        n = rms(x, w[layer + "input_layernorm.weight"])
        positions = torch.arange(rows) + depth - base
        q = linear(n, "self_attn.q_proj").view(rows, case["heads"], -1)
        k = linear(n, "self_attn.k_proj").view(rows, case["kv_heads"], -1)
        v = linear(n, "self_attn.v_proj").view(rows, case["kv_heads"], -1)
        if case["qk_norms"]:
            q = rms(q, w[layer + "self_attn.q_norm.weight"])
            k = rms(k, w[layer + "self_attn.k_norm.weight"])
        keys.append((rope(k, positions), v))
        q = rope(q, positions)
        out = []
        for r in range(rows):
            seen = [(keys[base - 1][0][j], keys[base - 1][1][j]) for j in range(r + 1)]
            seen += [(keys[s][0][r], keys[s][1][r]) for s in range(base, depth)]
            ks = torch.stack([s[0] for s in seen]).repeat_interleave(
                case["heads"] // case["kv_heads"], 1)
            vs = torch.stack([s[1] for s in seen]).repeat_interleave(
                case["heads"] // case["kv_heads"], 1)
            p = torch.softmax((q[r] * ks).sum(-1) / case["head_dim"] ** 0.5, 0)
            out.append((p[..., None] * vs).sum(0).flatten())
        x = x + linear(torch.stack(out), "self_attn.o_proj")
        n = rms(x, w[layer + "post_attention_layernorm.weight"])
        gate = torch.nn.functional.silu(linear(n, "mlp.gate_proj")) * linear(n, "mlp.up_proj")
        x = x + linear(gate, "mlp.down_proj")
        y = rms(x, w[prefix + "norm.weight"])
        ys.append(y)
        state = y if case["tap"] == "after" else x
    return ys


def loss_of(case, ys, words, final_hidden, hard, depth):
    """Mean over the rows that have a target; hard[r] belongs to what row r's own hidden predicts."""
    rows = final_hidden.shape[0] - depth
    if rows <= 0:
        return torch.zeros(())
    log_q = torch.log_softmax(ys[depth - 1][:rows] @ words.T, -1)
    t = torch.softmax(final_hidden[depth:] @ words.T, -1)
    soft = -(t * log_q).sum(-1)
    target = hard[depth:]
    known = target >= 0
    nll = -log_q.gather(1, target.clamp(min=0)[:, None])[:, 0]
    if case["targets"] == "soft":
        each = soft
    elif case["targets"] == "hard":
        each = torch.where(known, nll, torch.zeros(()))
        known_rows = max(int(known.sum()), 1)
        return each.sum() / known_rows
    else:
        each = torch.where(known, (soft + nll) / 2, soft)
    return each.mean()


def main(path):
    torch.manual_seed(20261130)
    tensors, metadata = {}, {}
    for name, case in CASES.items():
        w = {}
        for parameter, shape in parameter_shapes(case):
            value = torch.randn(shape) * (0.3 if len(shape) == 2 else 0.1)
            value += 1.0 if "norm" in parameter else 0.0
            w[parameter] = value.float().double().requires_grad_()
        total = sum(SEGMENTS)
        embedding = torch.randn(total + case["depths"] - 1, DIM).float().double()
        hidden = torch.randn(total, DIM).float().double()
        final_hidden = torch.randn(total, DIM).float().double()
        words = (torch.randn(WORDS, DIM) * 0.5).float().double()
        hard = torch.randint(-1, WORDS, (total,))
        norm = sum(BETA ** d for d in range(case["depths"]))
        losses = [0.0] * case["depths"]
        first, ys = 0, [[] for _ in range(case["depths"])]
        for rows in SEGMENTS:
            part = slice(first, first + rows)
            y = run(case, w, embedding[first:first + rows + case["depths"] - 1], hidden[part])
            for depth in range(1, case["depths"] + 1):
                weight = BETA ** (depth - 1) / norm / len(SEGMENTS)
                losses[depth - 1] = losses[depth - 1] + weight * loss_of(
                    case, y, words, final_hidden[part], hard[part], depth)
                ys[depth - 1].append(y[depth - 1])
            first += rows
        sum(losses).backward()
        for parameter, value in w.items():
            tensors[f"{name}/w/{parameter}"] = value.detach()
            tensors[f"{name}/g/{parameter}"] = value.grad
        for depth in range(case["depths"]):
            tensors[f"{name}/y/{depth + 1}"] = torch.cat(ys[depth]).detach()
        tensors[f"{name}/loss"] = torch.stack([x.detach() for x in losses])
        for key, value in (("embedding", embedding), ("hidden", hidden), ("words", words),
                           ("final_hidden", final_hidden), ("hard", hard.double())):
            tensors[f"{name}/{key}"] = value
        metadata[name] = json.dumps({**case, "dim": DIM, "hidden_dim": HIDDEN_DIM, "words": WORDS,
                                     "eps": EPS, "theta": THETA, "beta": BETA,
                                     "segments": SEGMENTS})
    save_file({k: v.float().contiguous() for k, v in tensors.items()}, path, metadata)


if __name__ == "__main__":
    main(sys.argv[1])
