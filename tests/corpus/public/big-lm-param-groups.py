# /// case
# title = "Transformer LM: the decay / no-decay split by name drops the positional table"
# category = "optimizer-wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["pos_table"]
# difficulty = "hard"
# symptom = "silent: pos_table gets gradients but is in no parameter group"
# symptom_check = "torch.equal(pos0, lm.pos_table)"
# cause = "the filters accept only names that end in weight or bias"
# fix = "put every remaining parameter in a group (and assert it)"
# evidence = [
#     { url = "https://github.com/DocF/multispectral-object-detection/issues/77" },
#     { url = "https://github.com/yangxiaofeng/LODS/issues/2" },
#     { url = "https://github.com/bubbliiiing/efficientdet-pytorch/issues/37" },
# ]
# ///
"""Character-level causal language model."""
import torch
import torch.nn.functional as F
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog " * 20
CHARS = sorted(set(TEXT))
STOI = {c: i for i, c in enumerate(CHARS)}
CTX, DIM, HEADS = 16, 32, 4


class CausalBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.merge = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class CharLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(len(CHARS), DIM)
        self.pos_table = nn.Parameter(torch.randn(CTX, DIM) * 0.02)  #! also
        self.blocks = nn.ModuleList(CausalBlock(DIM, HEADS) for _ in range(2))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, len(CHARS), bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos_table[: ids.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def build_optimizer(model, lr=1e-3, decay=0.1):
    matrices, vectors = [], []
    for name, p in model.named_parameters():
        if name.endswith("weight") and p.ndim >= 2:
            matrices.append(p)
        elif name.endswith(("bias", "weight")):  #- here
#+         else:
            vectors.append(p)  #! also
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}], lr=lr  #! also
    )


def sample_batch(ids, n):
    start = torch.randint(0, len(ids) - CTX - 1, (n,))
    x = torch.stack([ids[s:s + CTX] for s in start])
    y = torch.stack([ids[s + 1:s + CTX + 1] for s in start])
    return x, y


torch.manual_seed(1)
ids = torch.tensor([STOI[c] for c in TEXT])
lm = CharLM()
pos0 = lm.pos_table.detach().clone()
opt = build_optimizer(lm)
for step in range(10):
    xb, yb = sample_batch(ids, 12)
    loss = F.cross_entropy(lm(xb).flatten(0, 1), yb.flatten())
    lm.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
    opt.step()
    if step % 3 == 0:
        print(step, round(loss.item(), 3))
