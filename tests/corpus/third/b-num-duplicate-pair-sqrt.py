# /// case
# title = "Euclidean distance of two identical embeddings"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["euclidean", "sqrt", "anchor", "pos"]
# difficulty = "hard"
# symptom = "After some good steps all parameters become NaN; the loss before it was finite."
# symptom_check = "any(p.isnan().any() for p in net.parameters())"
# cause = "The batch sampler can pick the same image as anchor and positive; sqrt(0) has an infinite derivative, inf * 0 gives NaN gradients."
# fix = "Add a small eps under the square root."
# evidence = [{ url = "https://github.com/adambielski/siamese-triplet/issues/18" }, { url = "https://github.com/tensorflow/tensorflow/issues/30199" }]
# ///
"""Triplet training of a small embedding network."""
import torch
from torch import nn


def euclidean(a, b):
    return (a - b).pow(2).sum(-1).sqrt()  #- here
#+     return ((a - b).pow(2).sum(-1) + 1e-12).sqrt()


class TripletLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, pos, neg):
        gap = euclidean(anchor, pos) - euclidean(anchor, neg) + self.margin  #! also
        return gap.clamp(min=0).mean()


class TripletSampler:
    """Draws anchor and positive from the same class, negative from another one."""

    def __init__(self, labels, seed):
        self.labels = labels
        self.g = torch.Generator().manual_seed(seed)
        self.by_class = {c: (labels == c).nonzero().squeeze(1) for c in labels.unique().tolist()}

    def pick(self, pool):
        return pool[torch.randint(0, len(pool), (1,), generator=self.g)].item()

    def __call__(self, n):
        rows = []
        classes = list(self.by_class)
        for _ in range(n):
            i, j = torch.randperm(len(classes), generator=self.g)[:2].tolist()
            same, other = self.by_class[classes[i]], self.by_class[classes[j]]
            rows.append((self.pick(same), self.pick(same), self.pick(other)))  #! also
        return torch.tensor(rows).T


class EmbeddingNet(nn.Module):
    def __init__(self, n_in=16, dim=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


torch.manual_seed(0)
labels = torch.arange(60) % 6
images = torch.randn(6, 16)[labels] + 0.9 * torch.randn(60, 16)
sampler = TripletSampler(labels, seed=1)
net, criterion = EmbeddingNet(), TripletLoss()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
history = []
for step in range(20):
    a, p, n = sampler(16)
    emb = net(images)
    loss = criterion(emb[a], emb[p], emb[n])
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()  #! also
    history.append(loss.item())
print(history[0], history[-1])
