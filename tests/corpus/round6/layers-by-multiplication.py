# /// case
# title = "A list of one layer times the depth"
# category = "identity"
# kind = "layers-are-one-object"
# kinds_also_ok = ["shared-parameters"]
# severity = "warning"
# names = ["blocks", "depth"]
# symptom = "there is one block, used four times"
# symptom_check = "gpt.blocks[0] is gpt.blocks[1]"
# cause = "the list holds the same object four times"
# fix = "a comprehension"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class GPTConfig:
    vocab: int = 40
    dim: int = 16
    heads: int = 2
    depth: int = 4
    block: int = 12


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.attn = nn.MultiheadAttention(c.dim, c.heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(c.dim, 4 * c.dim), nn.GELU(), nn.Linear(4 * c.dim, c.dim))

    def forward(self, x, mask):
        h = self.n1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok, self.pos = nn.Embedding(c.vocab, c.dim), nn.Embedding(c.block, c.dim)
        self.blocks = nn.ModuleList([Block(c)] * c.depth)  #- here
#+         self.blocks = nn.ModuleList([Block(c) for _ in range(c.depth)])
        self.head = nn.Linear(c.dim, c.vocab)

    def forward(self, ids):
        n = ids.shape[1]
        mask = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        x = self.tok(ids) + self.pos(torch.arange(n))
        for block in self.blocks:  #! also
            x = block(x, mask)
        return self.head(x)


torch.manual_seed(0)
gpt = GPT(GPTConfig())
opt = torch.optim.AdamW(gpt.parameters(), lr=3e-4)
for it in range(3):
    ids = torch.randint(0, 40, (8, 13))
    loss = nn.functional.cross_entropy(gpt(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), sum(p.numel() for p in gpt.parameters()))
