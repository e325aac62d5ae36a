# /// case
# title = "Keyword of the trainable parameters matches nothing"
# category = "optimizer-wiring"
# kind = "all-parameters-frozen"
# severity = "error"
# names = ["trainable", "requires_grad", "lora_", "adapter"]
# difficulty = "easy"
# symptom = "RuntimeError in backward: element 0 of tensors does not require grad."
# raises = "RuntimeError"
# raises_message = "does not require grad"
# cause = "Everything is frozen but names with 'lora_'; the wrapper's parameters are called adapter.a / adapter.b, and head is not listed either."
# fix = "Use the keyword that the parameters really have."
# evidence = [{ url = "https://github.com/huggingface/transformers/issues/21381" }, { url = "https://github.com/ultralytics/yolov5/issues/1213" }]
# ///
"""Parameter-efficient tuning of a text classifier."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class TuneConfig:
    rank: int = 2
    lr: float = 1e-2
    trainable: tuple = ("lora_",)  #- here
#+     trainable: tuple = ("adapter",)
    steps: int = 20


class LowRank(nn.Module):
    def __init__(self, i, o, rank):
        super().__init__()
        self.a = nn.Parameter(torch.randn(i, rank) / i**0.5)
        self.b = nn.Parameter(torch.zeros(rank, o))

    def forward(self, x):
        return x @ self.a @ self.b


class Adapted(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.adapter = LowRank(base.in_features, base.out_features, rank)

    def forward(self, x):
        return self.base(x) + self.adapter(x)


class BagOfWords(nn.Module):
    def __init__(self, vocab=40, dim=16):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim)
        self.hidden = nn.Linear(dim, dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        return self.head(torch.tanh(self.hidden(self.bag(ids))))


def prepare(model, cfg):
    model.hidden = Adapted(model.hidden, cfg.rank)
    model.head = Adapted(model.head, cfg.rank)
    for name, p in model.named_parameters():  #! here
        p.requires_grad_(any(key in name for key in cfg.trainable))  #! here
    return model


def texts(n):
    ids = torch.randint(0, 40, (n, 9))
    return ids, (ids.float().mean(1) > 19.5).long()


torch.manual_seed(0)
cfg = TuneConfig()
model = prepare(BagOfWords(), cfg)  #! also
opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)  #! also
for step in range(cfg.steps):
    ids, y = texts(64)
    loss = F.cross_entropy(model(ids), y)
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(loss.item())
