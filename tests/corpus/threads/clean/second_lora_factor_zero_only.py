import torch
from torch import nn

torch.manual_seed(8)


class LoRA(nn.Module):
    def __init__(self, base, r=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(r, base.in_features) / r)
        self.b = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + x @ self.a.t() @ self.b.t()


layer = LoRA(nn.Linear(6, 6))
opt = torch.optim.AdamW([layer.a, layer.b], lr=1e-2)
for _ in range(10):
    x = torch.randn(16, 6)
    opt.zero_grad()
    (layer(x) - x.flip(-1)).pow(2).mean().backward()
    opt.step()
