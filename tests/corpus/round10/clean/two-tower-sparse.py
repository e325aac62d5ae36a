import torch
import torch.nn.functional as F
from torch import nn


class TwoTower(nn.Module):
    def __init__(self, users, items, features, dim=12):
        super().__init__()
        self.user = nn.Embedding(users, dim, sparse=True)
        self.item = nn.Embedding(items, dim, sparse=True)
        self.content = nn.Linear(features, dim, bias=False)
        self.temperature = nn.Parameter(torch.tensor(0.0))
        nn.init.normal_(self.user.weight, std=0.2)
        nn.init.normal_(self.item.weight, std=0.2)

    def forward(self, user, item, features):
        u = self.user(user)
        v = self.item(item) + self.content(features)
        return u @ v.T * self.temperature.exp()


def split_parameters(model):
    sparse = {id(m.weight): m.weight for m in model.modules() if isinstance(m, nn.Embedding) and m.sparse}
    dense = [p for p in model.parameters() if id(p) not in sparse]
    return list(sparse.values()), dense


def interactions(n, users=30, items=50, features=5):
    catalogue = torch.randn(items, features)
    taste = torch.randn(users, features)
    user = torch.randint(0, users, (n,))
    item = torch.distributions.Categorical(logits=1.5 * taste[user] @ catalogue.T).sample()
    return user, item, catalogue, torch.bincount(item, minlength=items).float() / n


torch.manual_seed(61)
user, item, catalogue, popularity = interactions(1200)
model = TwoTower(30, 50, 5)
sparse, dense = split_parameters(model)
optimizers = [torch.optim.SparseAdam(sparse, lr=0.02), torch.optim.Adam(dense, lr=0.01)]
losses = []
for epoch in range(5):
    for rows in torch.randperm(len(user)).split(120):
        logits = model(user[rows], item[rows], catalogue[item[rows]])
        logits = logits - popularity[item[rows]].clamp(min=1e-4).log()[None]
        collide = (item[rows][:, None] == item[rows][None]) & ~torch.eye(len(rows), dtype=torch.bool)
        loss = F.cross_entropy(logits.masked_fill(collide, float("-inf")), torch.arange(len(rows)))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
print(f"{losses[0]:.3f} -> {losses[-1]:.3f}, scale {model.temperature.exp().item():.3f}")
