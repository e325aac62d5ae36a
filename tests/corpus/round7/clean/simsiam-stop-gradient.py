import torch
import torch.nn as nn
import torch.nn.functional as F


def negative_cosine(p, z):
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()


class SimSiam(nn.Module):
    def __init__(self, n_in=12, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, dim), nn.BatchNorm1d(dim, affine=False))
        self.predictor = nn.Sequential(nn.Linear(dim, 4), nn.ReLU(), nn.Linear(4, dim))

    def forward(self, x1, x2):
        z1, z2 = self.encoder(x1), self.encoder(x2)
        return {"p": (self.predictor(z1), self.predictor(z2)), "z": (z1, z2)}


torch.manual_seed(106)
model = SimSiam()
optimizer = torch.optim.SGD(
    [{"params": model.encoder.parameters()}, {"params": model.predictor.parameters(), "weight_decay": 0.0}],
    lr=0.05, momentum=0.9, weight_decay=1e-4,
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
samples = torch.randn(80, 12)
for epoch in range(4):
    for rows in torch.randperm(80).split(20):
        x = samples[rows]
        out = model(x * (torch.rand_like(x) > 0.2), x + 0.1 * torch.randn_like(x))
        (p1, p2), (z1, z2) = out["p"], out["z"]
        loss = 0.5 * (negative_cosine(p1, z2) + negative_cosine(p2, z1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    print(epoch, loss.item(), z1.detach().std(0).mean().item())
