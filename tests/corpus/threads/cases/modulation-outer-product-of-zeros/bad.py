import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)


class ModulatedGenerator(nn.Module):
    def __init__(self, cin=4, cout=6):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cout, cin) * 0.2)
        self.w_out = nn.Parameter(torch.zeros(cout, 1))
        self.w_in = nn.Parameter(torch.zeros(1, cin))
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, z):
        return F.linear(z, self.weight * (1 + self.w_out @ self.w_in), self.bias)


gen = ModulatedGenerator()
disc = nn.Linear(6, 1).requires_grad_(False)
optimizer = torch.optim.RMSprop(gen.parameters(), lr=1e-3)
for it in range(15):
    loss = F.softplus(-disc(gen(torch.randn(16, 4)))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
