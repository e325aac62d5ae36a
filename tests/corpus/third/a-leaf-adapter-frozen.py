# /// case
# title = "Freeze filter does not match the adapter names, adapters in the optimizer stay frozen"
# category = "requires-grad"
# kind = "parameters-frozen-by-mistake"
# kinds_also_ok = ["all-parameters-frozen", "freeze-without-effect", "frozen-parameter-in-optimizer"]
# severity = "warning"
# names = ["down", "up", "requires_grad", "keep", "freeze_base"]
# difficulty = "medium"
# symptom = "adapters keep their initial values although they are in the optimizer; only the head is trained"
# symptom_check = "all(not p.requires_grad and p.grad is None for n, p in model.named_parameters() if n.split(\".\")[-2] in (\"down\", \"up\"))"
# cause = "freeze_base freezes every parameter whose name does not contain \"adapter.\" or \"head.\", but the adapter modules are called bottleneck"
# fix = "keep the names that the modules really have"
# evidence = [{ url = "https://github.com/huggingface/transformers/issues/26098" }, { url = "https://github.com/microsoft/LoRA/pull/125" }, { url = "https://github.com/MaxZanella/CLIP-LoRA/issues/6" }]
# ///
"""Parameter-efficient tuning of a frozen encoder with bottleneck adapters."""
import math
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class TuneConfig:
    vocab: int = 40
    dim: int = 24
    layers: int = 2
    rank: int = 4
    classes: int = 2
    lr_adapter: float = 5e-3
    lr_head: float = 1e-2
    keep: tuple = ("adapter.", "head.")  #- here
#+     keep: tuple = ("bottleneck.", "head.")
    seed: int = 3


class Bottleneck(nn.Module):
    def __init__(self, dim, rank):
        super().__init__()
        self.down = nn.Linear(dim, rank)
        self.up = nn.Linear(rank, dim)
        nn.init.normal_(self.up.weight, std=1e-2)
        nn.init.zeros_(self.up.bias)

    def forward(self, h):
        return h + self.up(F.gelu(self.down(h)))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm = nn.LayerNorm(cfg.dim)
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.ff = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))
        self.bottleneck = Bottleneck(cfg.dim, cfg.rank)

    def forward(self, h):
        q, k, v = self.qkv(self.norm(h)).chunk(3, dim=-1)
        att = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.size(-1)), dim=-1)
        h = h + att @ v
        return self.bottleneck(h + self.ff(h))


class Classifier(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.head = nn.Linear(cfg.dim, cfg.classes)

    def forward(self, ids):
        h = self.tokens(ids)
        for block in self.blocks:
            h = block(h)
        return self.head(h.mean(dim=1))


def freeze_base(model, keep):
    for name, p in model.named_parameters():
        p.requires_grad_(any(key in name for key in keep))  #! here


def build_optimizer(model, cfg):
    adapters = [p for b in model.blocks for p in b.bottleneck.parameters()]  #! also
    return torch.optim.AdamW([  #! also
        {"params": adapters, "lr": cfg.lr_adapter},  #! also
        {"params": model.head.parameters(), "lr": cfg.lr_head},
    ], weight_decay=0.0)


cfg = TuneConfig()
torch.manual_seed(cfg.seed)
model = Classifier(cfg)
freeze_base(model, cfg.keep)  #! here
opt = build_optimizer(model, cfg)

history = []
for step in range(20):
    ids = torch.randint(0, cfg.vocab, (32, 10))
    labels = (ids % 2).float().mean(1).gt(0.5).long()
    opt.zero_grad()
    loss = F.cross_entropy(model(ids), labels)
    loss.backward()
    opt.step()
    history.append(loss.item())
print(f"loss {history[0]:.3f} -> {history[-1]:.3f}")
