import torch
import torch.nn as nn

torch.manual_seed(1)


class MoE(nn.Module):
    def __init__(self, dim=8, experts=4):
        super().__init__()
        self.router = nn.Linear(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        gate = self.router(x).softmax(-1)
        mixed = sum(gate[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))
        loads = torch.stack([gate[:, i].mean() for i in range(gate.size(1))])
        return self.out(mixed), (loads * loads).sum() * gate.size(1)


model = MoE()
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(8):
    x = torch.randn(64, 8)
    pred, balance = model(x)
    loss = (pred - x.sum(1, keepdim=True)).pow(2).mean() + 0.01 * balance
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
print(loss.item(), balance.item())
