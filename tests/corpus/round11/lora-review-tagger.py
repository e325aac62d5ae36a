# /// case
# title = "Reentrant checkpointing over frozen embeddings cuts off the LoRA parameters"
# category = "graph-break"
# kind = "reentrant-checkpoint-without-grad-input"
# kinds_also_ok = ["checkpoint-no-grad-inputs", "graph-break", "parameters-without-gradient", "lora-not-trained"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["checkpoint", "use_reentrant", "hidden"]
# symptom = "the gradients of all LoRA matrices are None; only the classifier is trained"
# symptom_check = "all(p.grad is None for p in model.encoder.parameters())"
# cause = "The reentrant checkpoint builds a graph only if one of its inputs requires grad, and the frozen embedding's output does not."
# fix = "use_reentrant=False, or let the embedding output require grad"
# ///
import math

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class LowRank(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.down), self.up)


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.attn_norm, self.mlp_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        batch, length, dim = x.shape
        parts = self.qkv(self.attn_norm(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, dim)
        x = x + self.out(mixed)
        return x + self.mlp(self.mlp_norm(x))


class Encoder(nn.Module):
    def __init__(self, vocabulary=60, dim=32, depth=2):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.gradient_checkpointing = False

    def forward(self, ids):
        hidden = self.tokens(ids)  #! also
        for block in self.blocks:
            if self.gradient_checkpointing and self.training:
                hidden = checkpoint(block, hidden, use_reentrant=True)  #- here
#+                 hidden = checkpoint(block, hidden, use_reentrant=False)
            else:
                hidden = block(hidden)
        return hidden.mean(dim=1)


class Tagger(nn.Module):
    def __init__(self, encoder, labels):
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(32, labels)

    def forward(self, ids):
        return self.classifier(self.encoder(ids))


def apply_lora(encoder, targets=("qkv", "out")):
    encoder.requires_grad_(False)  #! also
    for block in encoder.blocks:
        for name in targets:
            setattr(block, name, LowRank(getattr(block, name)))
    return encoder


def reviews(count, length=12):
    ids = torch.randint(0, 60, (count, length))
    positive = (ids < 10).sum(1) > (ids >= 50).sum(1)
    return ids, positive.long()


torch.manual_seed(21)
encoder = apply_lora(Encoder())
encoder.gradient_checkpointing = True  #! also
model = Tagger(encoder, labels=2)
trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
print("trainable", sum(p.numel() for p in trainable.values()))
optimizer = torch.optim.AdamW(trainable.values(), lr=5e-3, weight_decay=0.0)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=40)
ids, labels = reviews(512)
model.train()
for step in range(40):
    rows = torch.randint(0, 512, (32,))
    loss = F.cross_entropy(model(ids[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trainable.values(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 10 == 9:
        print(f"step {step + 1} loss {loss.item():.4f}")
