import torch
from torch import nn

torch.manual_seed(0)


class NCF(nn.Module):
    def __init__(self, users, items, d=6):
        super().__init__()
        self.user = nn.Embedding(users, d, sparse=True)
        self.item = nn.Embedding(items, d, sparse=True)
        self.mlp = nn.Sequential(nn.Linear(2 * d, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, u, i):
        return self.mlp(torch.cat([self.user(u), self.item(i)], -1)).squeeze(-1)


model = NCF(20, 30)
sparse = torch.optim.SparseAdam([*model.user.parameters(), *model.item.parameters()], lr=1e-2)
dense = torch.optim.Adam(model.mlp.parameters(), lr=1e-3)
optimizers = [sparse, dense]
u, i = torch.randint(0, 20, (128,)), torch.randint(0, 30, (128,))
clicked = ((u + i) % 3 == 0).float()
for epoch in range(3):
    for idx in torch.randperm(128).split(32):
        loss = nn.functional.binary_cross_entropy_with_logits(model(u[idx], i[idx]), clicked[idx])
        for opt in optimizers:
            opt.zero_grad()
        loss.backward()
        for opt in optimizers:
            opt.step()
    print(epoch, loss.item())
