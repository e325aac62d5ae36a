import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
V, block, micro, accum, max_iters, warmup = 17, 8, 4, 2, 8, 2


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1))
        self.register_buffer("mask", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.attn(self.ln1(x)).split(C, 2))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf")).softmax(-1)
        x = x + self.proj((att @ v).transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, d), nn.Embedding(block, d)
        self.h = nn.ModuleList([Block(d, 2), Block(d, 2)])
        self.ln_f, self.lm_head = nn.LayerNorm(d), nn.Linear(d, V, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for b in self.h:
            x = b(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, V), targets.view(-1), ignore_index=-1)


def get_lr(it, lr=3e-3, low=3e-4):
    if it < warmup:
        return lr * (it + 1) / (warmup + 1)
    ratio = (it - warmup) / (max_iters - warmup)
    return low + 0.5 * (1 + math.cos(math.pi * ratio)) * (lr - low)


data = (torch.arange(400) ** 2) % V


def get_batch():
    ix = torch.randint(len(data) - block, (micro,))
    return torch.stack([data[i : i + block] for i in ix]), torch.stack([data[i + 1 : i + 1 + block] for i in ix])


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
X, Y = get_batch()
for it in range(max_iters):
    for g in optimizer.param_groups:
        g["lr"] = get_lr(it)
    for micro_step in range(accum):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits, loss = model(X, Y)
            loss = loss / accum
        X, Y = get_batch()
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(it, loss.item() * accum, optimizer.param_groups[0]["lr"])
