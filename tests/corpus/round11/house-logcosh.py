# /// case
# title = "A column of predictions minus a row of targets"
# category = "loss"
# kind = "broadcast-in-loss"
# kinds_also_ok = ["shape-mismatch-in-loss", "prediction-target-broadcast", "missing-squeeze"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["pred", "target", "price", "diff"]
# symptom = "every prediction is compared with every target and the model learns about the mean"
# symptom_check = "(model(num_va, dist_va) - price_va).dim() == 2"
# cause = "the model returns (N, 1), the target is (N,), and their difference is (N, N)."
# fix = "squeeze the predictions"
# ///
import math
import torch
from torch import nn


class LogCoshLoss(nn.Module):
    def forward(self, pred, target):
        diff = pred - target  #! also
        return (diff + nn.functional.softplus(-2.0 * diff) - math.log(2.0)).mean()


class PriceModel(nn.Module):
    def __init__(self, n_numeric, n_districts, emb=4):
        super().__init__()
        self.district = nn.Embedding(n_districts, emb)
        self.mlp = nn.Sequential(
            nn.Linear(n_numeric + emb, 32),
            nn.ReLU(),
            nn.Linear(32, 16),
            nn.ReLU(),
            nn.Linear(16, 1),
        )

    def forward(self, numeric, district):
        features = torch.cat([numeric, self.district(district)], dim=1)
        return self.mlp(features)  #- here
#+         return self.mlp(features).squeeze(1)


def synth_houses(n, n_districts=6):
    numeric = torch.randn(n, 5)
    district = torch.randint(0, n_districts, (n,))
    price = 1.5 * numeric[:, 0] + numeric[:, 1] * numeric[:, 2] + 0.5 * district.float()
    return numeric, district, price + 0.1 * torch.randn(n)


def standardize(train, *others):
    mean, std = train.mean(), train.std()
    return [(t - mean) / std for t in (train, *others)]


def minibatches(*tensors, size=32):
    order = torch.randperm(tensors[0].size(0))
    for chunk in order.split(size):
        yield tuple(t[chunk] for t in tensors)


torch.manual_seed(8)
torch.set_num_threads(1)
num_tr, dist_tr, price_tr = synth_houses(512)
num_va, dist_va, price_va = synth_houses(128)
price_tr, price_va = standardize(price_tr, price_va)

model = PriceModel(5, 6)
loss_fn = LogCoshLoss()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=8, gamma=0.5)

for epoch in range(16):
    for numeric, district, price in minibatches(num_tr, dist_tr, price_tr):
        pred = model(numeric, district)  #! also
        loss = loss_fn(pred, price)  #! also
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    with torch.no_grad():
        val = loss_fn(model(num_va, dist_va), price_va).item()  #! also
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d} train {loss.item():.4f} val {val:.4f}")

with torch.no_grad():
    spread = model(num_va, dist_va).std().item()
print("std of the predictions", round(spread, 3), "of the targets", round(price_va.std().item(), 3))
