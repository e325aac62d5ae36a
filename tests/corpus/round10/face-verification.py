# /// case
# title = "acos is differentiated where the cosine is one"
# category = "numerics"
# kind = "acos-at-one"
# kinds_also_ok = ["unbounded-derivative-at-boundary", "nan-gradient-of-acos", "clamp-to-closed-interval"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["acos", "cosine", "clamp"]
# symptom = "all weights are nan after the first steps"
# symptom_check = "any(bool(p.isnan().any()) for p in model.parameters())"
# cause = "The derivative of acos at 1 is infinite, and the examples whose embedding is the imprinted centre have cosine 1."
# fix = "clamp to slightly less than 1"
# ///
import math

import torch
import torch.nn.functional as F
from torch import nn


class ArcMargin(nn.Module):
    def __init__(self, dim, identities, scale=16.0, margin=0.3):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(identities, dim))
        self.scale, self.margin = scale, margin

    @torch.no_grad()
    def imprint(self, embedding, labels):
        for label in labels.unique():
            self.centres[label] = embedding[labels == label][0]  #! also

    def forward(self, embedding, labels):
        cosine = F.normalize(embedding, dim=-1) @ F.normalize(self.centres, dim=-1).T  #! also
        theta = torch.acos(cosine.clamp(-1.0, 1.0))  #- here
#+         theta = torch.acos(cosine.clamp(-1.0 + 1e-6, 1.0 - 1e-6))
        target = F.one_hot(labels, len(self.centres)).bool()
        shifted = torch.where(target, (theta + self.margin).clamp(max=math.pi), theta)
        return F.cross_entropy(self.scale * shifted.cos(), labels)


def faces(n, identities=16, pixels=40):
    labels = torch.arange(n) % identities
    portraits = torch.randn(identities, pixels)
    return portraits[labels] + 0.7 * torch.randn(n, pixels), labels


def verification_gap(model, x, labels):
    with torch.no_grad():
        e = F.normalize(model(x), dim=-1)
    similarity = e @ e.T
    same = labels[:, None] == labels[None]
    return (similarity[same].mean() - similarity[~same].mean()).item()


torch.manual_seed(22)
x, labels = faces(320)
model = nn.Sequential(nn.Linear(40, 48), nn.PReLU(), nn.Linear(48, 16))
head = ArcMargin(16, 16)
head.imprint(model(x), labels)
optimizer = torch.optim.SGD([
    {"params": model.parameters()},
    {"params": head.parameters(), "weight_decay": 1e-3},
], lr=0.02, momentum=0.9)

losses = []
for epoch in range(6):
    for rows in torch.randperm(len(x)).split(64):
        loss = head(model(x[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1], verification_gap(model, x, labels))
