import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class SwitchFFN(nn.Module):
    def __init__(self, d, n_experts=4, capacity=1.5):
        super().__init__()
        self.router = nn.Linear(d, n_experts, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d)) for _ in range(n_experts))
        self.n, self.capacity = n_experts, capacity

    def forward(self, x):
        probs = self.router(x + (0.01 * torch.randn_like(x) if self.training else 0)).softmax(-1)
        gate, choice = probs.max(-1)
        cap = int(self.capacity * len(x) / self.n)
        out = x.clone()
        dropped = 0
        for e, expert in enumerate(self.experts):
            idx = (choice == e).nonzero(as_tuple=True)[0]
            dropped += max(0, len(idx) - cap)
            idx = idx[:cap]
            if len(idx):
                out[idx] = x[idx] + gate[idx, None] * expert(x[idx])
        fraction = F.one_hot(choice, self.n).float().mean(0)
        aux = self.n * (fraction * probs.mean(0)).sum()
        return out, aux, dropped


layer, head = SwitchFFN(8), nn.Linear(8, 2)
params = list(layer.parameters()) + list(head.parameters())
opt = torch.optim.Adam(params, lr=3e-3)
X = torch.randn(96, 8)
Y = (X[:, 0] * X[:, 1] > 0).long()
for epoch in range(5):
    for i in torch.randperm(96).split(32):
        h, aux, dropped = layer(X[i])
        loss = F.cross_entropy(head(h), Y[i]) + 0.01 * aux
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), aux.item(), dropped)
