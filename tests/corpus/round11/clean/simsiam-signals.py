import torch
import torch.nn as nn
import torch.nn.functional as F


class SimSiam(nn.Module):
    def __init__(self, d_in=40, dim=32, bottleneck=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(d_in, 64), nn.BatchNorm1d(64), nn.ReLU(),
            nn.Linear(64, dim), nn.BatchNorm1d(dim, affine=False),
        )
        self.predictor = nn.Sequential(
            nn.Linear(dim, bottleneck), nn.BatchNorm1d(bottleneck), nn.ReLU(), nn.Linear(bottleneck, dim),
        )

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        pa, pb = self.predictor(za), self.predictor(zb)
        return pa, pb, za.detach(), zb.detach()


def negative_cosine(p, z):
    return -F.cosine_similarity(p, z, dim=1).mean()


def signals(n, length=40):
    y = torch.randint(0, 3, (n,))
    t = torch.linspace(0, 1, length)
    freq = torch.tensor([2.0, 4.0, 7.0])[y].unsqueeze(1)
    return torch.sin(6.283 * freq * t + 0.5 * torch.randn(n, 1)), y


def augment(x):
    x = x * (1 + 0.2 * torch.randn(len(x), 1))
    x = x + 0.1 * torch.randn_like(x)
    return torch.roll(x, int(torch.randint(-2, 3, (1,))), dims=1)


@torch.no_grad()
def knn_accuracy(encoder, bank, labels, queries, truth, k=5):
    was_training = encoder.training
    encoder.eval()
    bank, queries = F.normalize(encoder(bank), dim=1), F.normalize(encoder(queries), dim=1)
    votes = labels[(queries @ bank.T).topk(k, dim=1).indices]
    encoder.train(was_training)
    return (votes.mode(dim=1).values == truth).float().mean().item()


torch.manual_seed(70)
torch.set_num_threads(1)
x, y = signals(384)
xq, yq = signals(100)
model = SimSiam()
optimizer = torch.optim.SGD([
    {"params": model.encoder.parameters()},
    {"params": model.predictor.parameters(), "lr": 0.05},
], lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
for epoch in range(10):
    model.train()
    for idx in torch.randperm(len(x)).split(64):
        pa, pb, za, zb = model(augment(x[idx]), augment(x[idx]))
        loss = 0.5 * (negative_cosine(pa, zb) + negative_cosine(pb, za))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 3 == 0:
        spread = za.std(0).mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} spread {spread:.2f} knn {knn_accuracy(model.encoder, x, y, xq, yq):.2f}")
