# /// case
# title = "The square root of a zero distance behind torch.where gives NaN gradients"
# category = "numerics"
# kind = "sqrt-of-zero-behind-where"
# kinds_also_ok = ["where-nan-gradient", "sqrt-at-zero", "nan-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["squared", "sqrt", "where"]
# symptom = "every gradient is NaN, every update is left out, and the model never trains"
# symptom_check = "step.taken == 0"
# cause = "sqrt has an infinite slope at 0 (the diagonal), and 0 * inf in the backward of where is NaN."
# fix = "clamp before the square root"
# ///
import random

import torch
from torch import nn
import torch.nn.functional as F


class IdentitySampler:
    """P identities with K pictures of each."""

    def __init__(self, labels, identities, pictures, seed=0):
        self.by_label = {int(l): torch.where(labels == l)[0].tolist() for l in labels.unique()}
        self.identities, self.pictures = identities, pictures
        self.random = random.Random(seed)

    def batches(self, count):
        for _ in range(count):
            chosen = self.random.sample(sorted(self.by_label), self.identities)
            yield [row for label in chosen for row in self.random.sample(self.by_label[label], self.pictures)]


class Embedder(nn.Module):
    def __init__(self, features, dim):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(features, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        return F.normalize(self.trunk(x), dim=-1)


def pairwise_distance(embedding):
    squared = (embedding[:, None] - embedding[None]).square().sum(-1)  #! also
    return torch.where(squared > 0, squared.sqrt(), torch.zeros_like(squared))  #- here
#+     return squared.clamp(min=1e-12).sqrt()


def batch_hard(embedding, labels, margin=0.3):
    distance = pairwise_distance(embedding)  #! also
    same = labels[:, None] == labels[None]
    hardest_positive = (distance * same).amax(dim=1)
    hardest_negative = (distance + 10.0 * same).amin(dim=1)
    return F.relu(hardest_positive - hardest_negative + margin).mean()


class SafeStepper:
    """Leaves out the updates whose gradient is not finite, as a mixed-precision scaler would."""

    def __init__(self, model, optimizer, max_norm):
        self.model, self.optimizer, self.max_norm = model, optimizer, max_norm
        self.taken = self.left_out = 0

    def __call__(self, loss):
        self.optimizer.zero_grad()
        loss.backward()  #! also
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)  #! also
        if torch.isfinite(norm):  #! also
            self.optimizer.step()
            self.taken += 1
        else:
            self.left_out += 1  #! also


@torch.no_grad()
def rank_one(model, x, labels):
    model.eval()
    distance = torch.cdist(model(x), model(x)).fill_diagonal_(float("inf"))
    model.train()
    return (labels[distance.argmin(1)] == labels).float().mean().item()


torch.manual_seed(101)
labels = torch.arange(40).repeat_interleave(8)
pictures = torch.randn(40, 32)[labels] + 1.1 * torch.randn(320, 32)
model = Embedder(32, 16)
step = SafeStepper(model, torch.optim.Adam(model.parameters(), lr=2e-3), max_norm=2.0)
sampler = IdentitySampler(labels, identities=8, pictures=4)
values = []
for index, rows in enumerate(sampler.batches(120)):
    loss = batch_hard(model(pictures[rows]), labels[rows])
    step(loss)
    values.append(loss.item())
    if index % 40 == 39:
        print(f"{index + 1:4d} loss {sum(values[-40:]) / 40:.4f} rank-1 {rank_one(model, pictures, labels):.3f}")
