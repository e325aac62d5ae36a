import torch
from torch import nn


class DeepSet(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(1, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU())
        self.rho = nn.Sequential(nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, 1))

    def forward(self, sets):
        return self.rho(self.phi(sets).mean(1))


def generate(n_sets, size):
    """Sets of samples and the entropy of the Gaussian that they were drawn from."""
    sigma = torch.rand(n_sets) * 2 + 0.1
    sets = torch.randn(n_sets, size, 1) * sigma.view(-1, 1, 1)
    return sets, torch.log(sigma) + 1.4189


def train(epochs, batch=16):
    model = DeepSet()
    optim = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    shapes = set()
    sets, target = generate(64, 25)
    for epoch in range(epochs):
        for idx in torch.randperm(64).split(batch):
            y_pred = model(sets[idx])
            y = target[idx]
            error = y_pred - y
            shapes.add(tuple(error.shape))
            loss = error.pow(2).mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
    return shapes, loss.item()


torch.manual_seed(71)
shapes, final = train(3)
print(shapes, final)
