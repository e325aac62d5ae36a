# /// case
# title = "Stop-gradient on the predictor output instead of the target projection"
# category = "graph-break"
# kind = "graph-break-detach"
# kinds_also_ok = ["parameter-without-gradient", "missing-detach"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["neg_cosine", "predictor", "p", "detach"]
# difficulty = "medium"
# symptom = "the predictor has no gradient and the representation collapses"
# symptom_check = "all(p.grad is None for p in model.predictor.parameters())"
# cause = "the detach belongs on z (the target side); on p it cuts off the predictor and lets the gradient through the target branch"
# fix = "detach z"
# evidence = [{ url = "https://github.com/lightly-ai/lightly/issues/559" }, { url = "https://github.com/PatrickHua/SimSiam/issues/39" }]
# ///
"""Self-supervised pre-training in the SimSiam style on tabular data."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def neg_cosine(p, z):
    return -F.cosine_similarity(p.detach(), z, dim=1).mean()  #- here
#+     return -F.cosine_similarity(p, z.detach(), dim=1).mean()


class SiameseModel(nn.Module):
    def __init__(self, features=16, dim=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(features, dim), nn.BatchNorm1d(dim), nn.ReLU(),
            nn.Linear(dim, dim), nn.BatchNorm1d(dim, affine=False),
        )
        self.predictor = nn.Sequential(nn.Linear(dim, dim // 4), nn.ReLU(), nn.Linear(dim // 4, dim))

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        pa, pb = self.predictor(za), self.predictor(zb)
        return 0.5 * (neg_cosine(pa, zb) + neg_cosine(pb, za))  #! also


class Corrupt:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, x):
        keep = torch.rand_like(x) > self.rate
        return torch.where(keep, x, x[torch.randperm(len(x))])


torch.manual_seed(0)
basis = torch.randn(4, 16)
model, augment = SiameseModel(), Corrupt(0.3)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for step in range(30):
    x = torch.randn(64, 4) @ basis
    loss = model(augment(x), augment(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"similarity {-loss.item():.3f}")
