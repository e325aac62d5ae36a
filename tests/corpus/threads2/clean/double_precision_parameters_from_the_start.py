import torch
import torch.nn as nn


class Wide(nn.Module):
    def __init__(self, sizes, dense, dtype=torch.float64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 1) for n in sizes).to(dtype)
        self.weight = nn.Parameter(torch.randn(dense, 1).mul(0.01).to(dtype))

    def forward(self, sparse, dense):
        return sum(t(sparse[:, i]) for i, t in enumerate(self.tables)) + dense @ self.weight


torch.manual_seed(31)
model = Wide([5, 7], 3)
optim = torch.optim.Adagrad(model.parameters(), lr=0.1)
for _ in range(5):
    sparse = torch.stack([torch.randint(0, 5, (20,)), torch.randint(0, 7, (20,))], 1)
    dense = torch.randn(20, 3, dtype=torch.float64)
    loss = nn.functional.binary_cross_entropy_with_logits(model(sparse, dense).squeeze(1), (dense[:, 0] > 0).double())
    optim.zero_grad()
    loss.backward()
    optim.step()
print(loss.item())
