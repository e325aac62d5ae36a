import math

import torch
from torch import nn

torch.manual_seed(0)


class LoRA(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + x @ self.a.t() @ self.b.t()


net = nn.Sequential(LoRA(nn.Linear(6, 10)), nn.GELU(), LoRA(nn.Linear(10, 3)))
trainable = [p for p in net.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-2)
for x in torch.randn(5, 14, 6):
    loss = nn.functional.cross_entropy(net(x), torch.randint(0, 3, (14,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(trainable), loss.item())
