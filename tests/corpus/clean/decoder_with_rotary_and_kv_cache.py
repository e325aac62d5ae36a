import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Attention(nn.Module):
    def __init__(self, dim, heads, limit):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        half = dim // heads // 2
        angle = torch.outer(torch.arange(limit).float(), 10000 ** (-torch.arange(half) / half))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        self.cache = None

    def forward(self, x, start=0):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        cos, sin = self.cos[start : start + t], self.sin[start : start + t]
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.cache is not None:
            self.cache[0][:b, :, start : start + t] = k
            self.cache[1][:b, :, start : start + t] = v
            k, v = self.cache[0][:b, :, : start + t], self.cache[1][:b, :, : start + t]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, limit):
        super().__init__()
        self.n1, self.n2 = RMSNorm(dim), RMSNorm(dim)
        self.attn = Attention(dim, heads, limit)
        self.w1, self.w2, self.w3 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim), nn.Linear(dim, 2 * dim)

    def forward(self, x, start=0):
        x = x + self.attn(self.n1(x), start)
        return x + self.w2(F.silu(self.w1(self.n2(x))) * self.w3(self.n2(x)))


class Decoder(nn.Module):
    def __init__(self, vocab=17, dim=16, heads=2, depth=2, limit=24):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, limit) for _ in range(depth))
        self.norm, self.head = RMSNorm(dim), nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.tok.weight
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids, targets=None, start=0):
        x = self.tok(ids)
        for block in self.blocks:
            x = block(x, start)
        if targets is None:
            return self.head(self.norm(x[:, [-1]])), None
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, label_smoothing=0.1)

    @torch.inference_mode()
    def generate(self, ids, count):
        for block in self.blocks:
            block.attn.cache = torch.zeros(2, 1, 2, 24, 8)
        logits, _ = self(ids)
        for _ in range(count):
            nxt = torch.multinomial(F.softmax(logits[:, -1] / 0.8, dim=-1), 1)
            ids = torch.cat([ids, nxt], dim=1)
            logits, _ = self(nxt, start=ids.shape[1] - 1)
        for block in self.blocks:
            block.attn.cache = None
        return ids


torch.manual_seed(0)
model = Decoder()
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optim = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-3)
warm = torch.optim.lr_scheduler.LambdaLR(
    optim, lambda it: it / 3 if it < 3 else 0.5 * (1 + math.cos(math.pi * (it - 3) / 5))
)
text = torch.randint(0, 17, (200,))
for it in range(6):
    model.train()
    optim.zero_grad(set_to_none=True)
    for micro in range(2):
        at = torch.randint(0, 180, (4,))
        x = torch.stack([text[i : i + 12] for i in at])
        y = torch.stack([text[i + 1 : i + 13] for i in at])
        _, loss = model(x, y)
        (loss / 2).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optim.step()
    warm.step()
    if it % 3 == 2:
        model.eval()
        print(it, loss.item(), model.generate(text[None, :4], 5).tolist())
