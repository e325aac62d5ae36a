import torch
from torch import nn

torch.manual_seed(12)


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.scale = dim**-0.5

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(-2, -1) * self.scale
        weights = torch.softmax(scores, dim=-1)
        return weights @ self.v(x), weights


attention, head = Attention(8), nn.Linear(8, 2)
opt = torch.optim.Adam([*attention.parameters(), *head.parameters()], lr=1e-3)
for _ in range(5):
    x, y = torch.randn(6, 5, 8), torch.randint(0, 2, (6,))
    mixed, weights = attention(x)
    loss = nn.functional.cross_entropy(head(mixed.mean(1)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
