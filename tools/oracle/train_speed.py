"""Position-depths a second of a training step in PyTorch, to compare bench/train_speed.cpp with: the
same head at the size of SmolLM2-135M's, forward, soft targets, backward and AdamW over random rows.

    python tools/oracle/train_speed.py [THREADS] [ROWS] [ROWS_A_SEQUENCE] [DEPTHS] [bf16|f32] [SECONDS]

Products run in bf16 under autocast where that is asked for, masters are float32. The mask is that of
a public recipe (plain causal attention at each depth), which PyTorch's fused attention knows; the
mask of serving would be slower here.
"""

import sys
import time

import torch
import torch.nn.functional as F

DIM, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, WORDS = 576, 1536, 9, 3, 64, 8192


def argument(i, default):
    return sys.argv[i] if len(sys.argv) > i else default


THREADS, ROWS, PER_SEQUENCE, DEPTHS = (int(argument(i, d)) for i, d in
                                       ((1, 2), (2, 1024), (3, 256), (4, 4)))
BF16 = argument(5, "bf16") == "bf16"
SECONDS = float(argument(6, 10))
torch.set_num_threads(THREADS)
torch.manual_seed(1)


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda n_in, n_out: torch.nn.Linear(n_in, n_out, bias=False)
        self.fc = linear(2 * DIM, DIM)
        self.q, self.o = linear(DIM, HEADS * HEAD_DIM), linear(HEADS * HEAD_DIM, DIM)
        self.k, self.v = linear(DIM, KV_HEADS * HEAD_DIM), linear(DIM, KV_HEADS * HEAD_DIM)
        self.gate, self.up, self.down = linear(DIM, HIDDEN), linear(DIM, HIDDEN), linear(HIDDEN, DIM)
        self.norms = torch.nn.ParameterList([torch.ones(DIM) for _ in range(5)])

    def norm(self, x, i):
        return F.rms_norm(x, (DIM,), self.norms[i], 1e-5)

    def forward(self, embedding, hidden, cos, sin):  # (sequences, rows, DIM)
        n, t = embedding.shape[:2]
        x = self.fc(torch.cat([self.norm(embedding, 0), self.norm(hidden, 1)], -1))
        a = self.norm(x, 2)
        heads = lambda y, count: y.view(n, t, count, HEAD_DIM).transpose(1, 2)
        rope = lambda y: y * cos + torch.cat([-y[..., HEAD_DIM // 2:], y[..., :HEAD_DIM // 2]], -1) * sin
        q, k, v = heads(self.q(a), HEADS), heads(self.k(a), KV_HEADS), heads(self.v(a), KV_HEADS)
        y = F.scaled_dot_product_attention(rope(q).to(v.dtype), rope(k).to(v.dtype), v,
                                           is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(n, t, -1))
        a = self.norm(x, 3)
        x = x + self.down(F.silu(self.gate(a)) * self.up(a))
        return self.norm(x, 4)


def main():
    head = Head()
    optimiser = torch.optim.AdamW(head.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.01)
    words = torch.randn(WORDS, DIM) * 0.1
    if BF16:
        words = words.bfloat16()
    n = ROWS // PER_SEQUENCE
    embedding = torch.randn(n, PER_SEQUENCE + DEPTHS, DIM)
    hidden = torch.randn(n, PER_SEQUENCE, DIM)
    angles = torch.arange(PER_SEQUENCE)[:, None] * 100000.0 ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
            with torch.no_grad():
                soft = torch.softmax((hidden.to(words.dtype) @ words.T).float(), -1)
            state, loss = hidden, 0.0
            for depth in range(1, DEPTHS + 1):
                state = head(embedding[:, depth - 1:depth - 1 + PER_SEQUENCE], state, cos, sin)
                y = state[:, :PER_SEQUENCE - depth]
                log_q = torch.log_softmax((y.to(words.dtype) @ words.T).float(), -1)
                loss = loss + 0.6 ** (depth - 1) * -(soft[:, depth:] * log_q).sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()

    step()
    wall, cpu, steps = time.time(), time.process_time(), 0
    while time.time() - wall < SECONDS:
        step()
        steps += 1
    wall, cpu = time.time() - wall, time.process_time() - cpu
    print(f"{ROWS * DEPTHS * steps / wall:.0f} position-depths/s, "
          f"{ROWS * DEPTHS * steps / cpu:.0f} a second of CPU time")


if __name__ == "__main__":
    main()
