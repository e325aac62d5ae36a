import torch
import torch.nn as nn
import torch.nn.functional as F


class Regressor(nn.Module):
    def __init__(self, width=32, rate=0.1):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(1, width), nn.Linear(width, width), nn.Linear(width, 2)
        self.norm = nn.BatchNorm1d(width)
        self.rate = rate

    def forward(self, x):
        h = F.relu(self.norm(self.a(x)))
        h = F.dropout(F.relu(self.b(h)), self.rate, training=True)
        mean, log_variance = self.c(h).chunk(2, 1)
        return mean, log_variance.clamp(-6, 3)


def nll(mean, log_variance, y):
    return 0.5 * (log_variance + (y - mean).square() * torch.exp(-log_variance)).mean()


@torch.no_grad()
def predict(net, x, draws=20):
    net.eval()
    means = torch.stack([net(x)[0] for _ in range(draws)])
    net.train()
    return means.mean(0), means.std(0)


torch.manual_seed(39)
x = torch.rand(100, 1) * 4 - 2
y = torch.sin(2 * x) + 0.1 * torch.randn_like(x) * x.abs()
net = Regressor()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(6):
    for rows in torch.randperm(100).split(25):
        loss = nll(*net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mean, spread = predict(net, torch.tensor([[0.0], [4.0]]))
    print(epoch, loss.item(), spread.flatten().tolist())
