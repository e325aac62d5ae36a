import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, rows, width, out):
        super().__init__()
        self.table = nn.Embedding(rows, width, sparse=True)
        self.project = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, out))

    def forward(self, ids):
        return F.normalize(self.project(self.table(ids)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, users, items, width=12, out=8):
        super().__init__()
        self.user, self.item = Tower(users, width, out), Tower(items, width, out)
        self.log_temperature = nn.Parameter(torch.tensor(-1.5))

    def forward(self, users, items, log_q):
        scores = self.user(users) @ self.item(items).T * torch.exp(-self.log_temperature)
        accidental = (items[:, None] == items[None]) & ~torch.eye(len(items), dtype=torch.bool)
        return (scores - log_q[items]).masked_fill(accidental, -1e4)


class Optimizers:
    def __init__(self, model):
        tables = [m.weight for m in model.modules() if isinstance(m, nn.Embedding)]
        known = {id(p) for p in tables}
        dense = [p for p in model.parameters() if id(p) not in known]
        self.all = [torch.optim.SparseAdam(tables, lr=2e-2), torch.optim.Adam(dense, lr=5e-3)]

    def zero_grad(self):
        for optimizer in self.all:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.all:
            optimizer.step()


torch.manual_seed(14)
popularity = torch.softmax(-torch.arange(40) / 15.0, 0)
model = TwoTower(users=50, items=40)
optimizers = Optimizers(model)
losses = []
for step in range(20):
    items = torch.multinomial(popularity, 32, replacement=True)
    users = (items + torch.randint(0, 3, (32,))) % 50
    loss = F.cross_entropy(model(users, items, popularity.log()), torch.arange(32))
    optimizers.zero_grad()
    loss.backward()
    optimizers.step()
    losses.append(loss.item())
print(f"{losses[0]:.3f} {losses[-1]:.3f}")
