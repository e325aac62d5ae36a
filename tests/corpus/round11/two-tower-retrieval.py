# /// case
# title = "The loss uses the no_grad method that was written for building the index"
# category = "graph-break"
# kind = "no-grad-method-in-training-path"
# kinds_also_ok = ["no-grad-in-forward", "graph-break", "parameters-without-gradient", "no-grad-decorator"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["embed_items", "no_grad", "candidate"]
# symptom = "the item tower never gets a gradient and keeps its initial weights"
# symptom_check = "all(p.grad is None for p in model.candidate.parameters())"
# cause = "forward() embeds the items with embed_items(), which is decorated with torch.no_grad()."
# fix = "call self.candidate(...) in forward, or take the decorator off embed_items"
# ///
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class RetrievalConfig:
    users: int = 200
    items: int = 120
    profile: int = 6
    attributes: int = 4
    dim: int = 16
    batch_size: int = 64
    epochs: int = 8
    lr: float = 3e-3
    temperature: float = 0.1
    seed: int = 5


class Tower(nn.Module):
    def __init__(self, rows, features, dim):
        super().__init__()
        self.ids = nn.Embedding(rows, dim)
        self.project = nn.Linear(features, dim)
        self.mix = nn.Sequential(nn.Linear(2 * dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, ids, features):
        joined = torch.cat([self.ids(ids), self.project(features)], dim=-1)
        return F.normalize(self.mix(joined), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, config, profiles, catalogue):
        super().__init__()
        self.config = config
        self.query = Tower(config.users, config.profile, config.dim)
        self.candidate = Tower(config.items, config.attributes, config.dim)  #! also
        self.register_buffer("profiles", profiles)
        self.register_buffer("catalogue", catalogue)

    def embed_users(self, users):
        return self.query(users, self.profiles[users])

    @torch.no_grad()  #! also
    def embed_items(self, items):  #! also
        return self.candidate(items, self.catalogue[items])  #! also

    def build_index(self):
        return self.embed_items(torch.arange(self.config.items))

    def forward(self, users, items):
        return self.embed_users(users) @ self.embed_items(items).t() / self.config.temperature  #- here
#+         candidates = self.candidate(items, self.catalogue[items])
#+         return self.embed_users(users) @ candidates.t() / self.config.temperature


def interactions(config):
    profiles = torch.randn(config.users, config.profile)
    catalogue = torch.randn(config.items, config.attributes)
    affinity = profiles @ torch.randn(config.profile, config.attributes) @ catalogue.t()
    clicks = torch.distributions.Categorical(logits=affinity).sample((12,))
    users = torch.arange(config.users).expand_as(clicks)
    return profiles, catalogue, users.flatten(), clicks.flatten()


def in_batch_softmax(logits, items):
    same = items[:, None].eq(items[None]) & ~torch.eye(len(items), dtype=torch.bool)
    return F.cross_entropy(logits.masked_fill(same, -1e4), torch.arange(len(items)))


@torch.no_grad()
def recall_at(model, users, items, k=10):
    ranked = (model.embed_users(users) @ model.build_index().t()).topk(k, dim=1).indices
    return ranked.eq(items[:, None]).any(1).float().mean().item()


config = RetrievalConfig()
torch.manual_seed(config.seed)
profiles, catalogue, users, items = interactions(config)
order = torch.randperm(len(users))
held_out, train = order[:300], order[300:]
model = TwoTower(config, profiles, catalogue)
optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
for epoch in range(config.epochs):
    total = 0.0
    for rows in train[torch.randperm(len(train))].split(config.batch_size):
        loss = in_batch_softmax(model(users[rows], items[rows]), items[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    print(f"{epoch} loss {total / len(train):.4f} recall@10 {recall_at(model, users[held_out], items[held_out]):.3f}")
