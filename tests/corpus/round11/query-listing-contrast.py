# /// case
# title = "The learned logit scale goes through .item() to be capped"
# category = "graph-break"
# kind = "item-detaches-learned-temperature"
# kinds_also_ok = ["item-breaks-graph", "graph-break", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["log_scale", "scale", "item"]
# symptom = "the temperature stays at its initial value for ever"
# symptom_check = "model.objective.log_scale.grad is None"
# cause = ".item() turns the scale into a Python float, so log_scale is not in the graph."
# fix = "self.log_scale.exp().clamp(max=self.ceiling)"
# ///
import math
from itertools import islice

import torch
from torch import nn
import torch.nn.functional as F


class QueryEncoder(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.words = nn.EmbeddingBag(vocabulary, dim, mode="mean")
        self.proj = nn.Linear(dim, dim)

    def forward(self, tokens):
        return self.proj(torch.tanh(self.words(tokens)))


class ListingEncoder(nn.Module):
    def __init__(self, features, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, dim))

    def forward(self, listing):
        return self.net(listing)


class SymmetricContrast(nn.Module):
    def __init__(self, initial=1 / 0.07, ceiling=100.0):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(initial)))  #! also
        self.ceiling = ceiling

    def forward(self, queries, listings):
        queries, listings = F.normalize(queries, dim=-1), F.normalize(listings, dim=-1)
        scale = min(self.log_scale.exp().item(), self.ceiling)  #- here
#+         scale = self.log_scale.exp().clamp(max=self.ceiling)
        logits = scale * queries @ listings.t()  #! also
        diagonal = torch.arange(len(logits), device=logits.device)
        return 0.5 * (F.cross_entropy(logits, diagonal) + F.cross_entropy(logits.t(), diagonal))


class SearchModel(nn.Module):
    def __init__(self, vocabulary=80, features=10, dim=24):
        super().__init__()
        self.query = QueryEncoder(vocabulary, dim)
        self.listing = ListingEncoder(features, dim)
        self.objective = SymmetricContrast()

    def forward(self, tokens, listing):
        return self.objective(self.query(tokens), self.listing(listing))


def purchases(batch_size, vocabulary=80, features=10, words=5):
    meaning = torch.randn(vocabulary, features)
    while True:
        tokens = torch.randint(0, vocabulary, (batch_size, words))
        listing = meaning[tokens].sum(1) + 0.7 * torch.randn(batch_size, features)
        yield tokens, listing


def parameter_groups(model, weight_decay):
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def train(model, stream, steps, lr=4e-3):
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.01), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=steps)
    for step, (tokens, listing) in enumerate(islice(stream, steps)):
        loss = model(tokens, listing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 40 == 0:
            yield step, loss.item(), model.objective.log_scale.exp().item()


torch.manual_seed(8)
model = SearchModel()
for step, value, scale in train(model, purchases(96), steps=200):
    print(f"{step:4d} loss {value:.4f} scale {scale:.2f}")
