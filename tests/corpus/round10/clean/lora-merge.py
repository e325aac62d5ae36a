import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LowRank(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        self.linear.weight.requires_grad = False
        self.linear.bias.requires_grad = False
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank
        self.merged = False

    def forward(self, x):
        y = self.linear(x)
        return y if self.merged else y + F.linear(F.linear(x, self.down), self.up) * self.scale

    def train(self, mode=True):
        super().train(mode)
        delta = self.scale * (self.up.data @ self.down.data)
        if mode and self.merged:
            self.linear.weight.data -= delta
        elif not mode and not self.merged:
            self.linear.weight.data += delta
        self.merged = not mode
        return self


class Regressor(nn.Module):
    def __init__(self, vocab=50, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.first = nn.Linear(dim, dim)
        self.second = nn.Linear(dim, 1)

    def forward(self, ids):
        return self.second(torch.tanh(self.first(self.embed(ids)))).mean(1).squeeze(-1)


def valence(ids, shift):
    return ((ids + shift) % 50).float().sub(25).div(12).sin().mean(1)


def fit(model, parameters, shift, steps, lr):
    optimizer = torch.optim.Adam(parameters, lr=lr)
    for step in range(steps):
        model.train()
        ids = torch.randint(50, (32, 6))
        loss = F.mse_loss(model(ids), valence(ids, shift))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            model.eval()
            with torch.no_grad():
                probe = torch.randint(50, (64, 6))
                print(step, loss.item(), F.mse_loss(model(probe), valence(probe, shift)).item())
    return model


torch.manual_seed(15)
model = Regressor()
fit(model, model.parameters(), 0, 60, 1e-2)
model.embed.requires_grad_(False)
model.first = LowRank(model.first, 4, 8)
model.second = LowRank(model.second, 1, 2)
model.zero_grad()
fit(model, [p for p in model.parameters() if p.requires_grad], 4, 60, 1e-2)
