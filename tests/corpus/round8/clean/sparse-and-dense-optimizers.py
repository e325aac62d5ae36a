import torch
import torch.nn as nn
import torch.nn.functional as F


class WideDeep(nn.Module):
    def __init__(self, users=200, items=150, width=8):
        super().__init__()
        self.user = nn.Embedding(users, width, sparse=True)
        self.item = nn.Embedding(items, width, sparse=True)
        self.deep = nn.Sequential(nn.Linear(2 * width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, user, item):
        return self.deep(torch.cat([self.user(user), self.item(item)], 1)).squeeze(1)


class Both:
    def __init__(self, *optimizers):
        self.optimizers = optimizers

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


torch.manual_seed(31)
model = WideDeep()
optimizer = Both(
    torch.optim.SparseAdam([model.user.weight, model.item.weight], lr=1e-2),
    torch.optim.AdamW(model.deep.parameters(), lr=5e-3),
)
for step in range(12):
    user, item = torch.randint(0, 200, (64,)), torch.randint(0, 150, (64,))
    wanted = ((user + item) % 2).float()
    loss = F.binary_cross_entropy_with_logits(model(user, item), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
