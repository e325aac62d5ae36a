import torch
from torch import nn

torch.manual_seed(0)


class Factors(nn.Module):
    def __init__(self, users, items, rank):
        super().__init__()
        self.user, self.item = nn.Embedding(users, rank, sparse=True), nn.Embedding(items, rank, sparse=True)
        self.tilt = nn.Parameter(torch.zeros(()))
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.tilt


model = Factors(30, 40, 5)
sparse = torch.optim.SparseAdam([model.user.weight, model.item.weight], lr=0.02)
dense = torch.optim.SGD([model.tilt], lr=0.1)
ratings = torch.randn(30, 40)
for epoch in range(3):
    total = torch.zeros(())
    for u in torch.randperm(30).split(10):
        i = torch.randint(0, 40, (10,))
        error = model(u, i) - ratings[u, i]
        loss = error.square().mean()
        for opt in (sparse, dense):
            opt.zero_grad()
        loss.backward()
        for opt in (sparse, dense):
            opt.step()
        total += loss.detach()
    with torch.no_grad():
        norms = model.user.weight.norm(dim=1, keepdim=True).clamp(min=1.0)
        model.user.weight.div_(norms)
    print(epoch, f"{total.item() / 3:.4f}")
