# /// case
# title = "The adapters are kept in a plain dict, so that their parameters are not the model's"
# category = "optimizer"
# kind = "unregistered-modules"
# kinds_also_ok = ["plain-dict-of-modules", "parameters-not-in-optimizer", "submodules-not-registered"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["adapters", "ModuleDict"]
# symptom = "the languages stay confused; the adapters never change, their gradients pile up"
# symptom_check = "not any('adapters' in name for name, _ in model.named_parameters())"
# cause = "A module registers only Modules and Parameters assigned to it, not those inside a dict."
# fix = "nn.ModuleDict"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class XlConfig:
    languages: tuple = ("de", "fi", "sw")
    vocab: int = 90
    dim: int = 32
    bottleneck: int = 12
    tags: int = 5


def make_adapter(cfg):
    return nn.Sequential(nn.LayerNorm(cfg.dim), nn.Linear(cfg.dim, cfg.bottleneck), nn.SiLU(), nn.Linear(cfg.bottleneck, cfg.dim))


class CrossLingualTagger(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.context = nn.Conv1d(cfg.dim, cfg.dim, 3, padding=1)
        self.adapters = {language: make_adapter(cfg) for language in cfg.languages}  #- here
#+         self.adapters = nn.ModuleDict({language: make_adapter(cfg) for language in cfg.languages})
        self.tagger = nn.Linear(cfg.dim, cfg.tags)

    def forward(self, ids, language):
        x = self.embed(ids)
        x = x + torch.relu(self.context(x.transpose(1, 2))).transpose(1, 2)
        return self.tagger(x + self.adapters[language](x))  #! also


def treebank(cfg, language, count=16, length=11):
    ids = torch.randint(cfg.vocab, (count, length))
    return ids, (ids // 6 + cfg.languages.index(language)) % cfg.tags


def loop(model, optimizer, cfg, rounds):
    for turn in range(rounds):
        losses = {}
        for language in cfg.languages:
            ids, tags = treebank(cfg, language)
            loss = F.cross_entropy(model(ids, language).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()  #! also
            loss.backward()
            optimizer.step()  #! also
            losses[language] = loss.item()
        yield losses


torch.manual_seed(101)
cfg = XlConfig()
model = CrossLingualTagger(cfg)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)  #! also
curve = list(loop(model, optimizer, cfg, 50))
for losses in curve[::10] + curve[-1:]:
    print({language: round(value, 3) for language, value in losses.items()})
