import math

import torch
import torch.nn as nn


class LoRA(nn.Module):
    def __init__(self, base, r=3, alpha=6, dropout=0.05):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(torch.empty(r, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale, self.drop = alpha / r, nn.Dropout(dropout)

    def forward(self, x):
        return self.base(x) + self.scale * (self.drop(x) @ self.A.T) @ self.B.T

    @torch.no_grad()
    def merged(self):
        layer = nn.Linear(self.base.in_features, self.base.out_features)
        layer.weight.copy_(self.base.weight + self.scale * self.B @ self.A)
        layer.bias.copy_(self.base.bias)
        return layer


torch.manual_seed(112)
body = nn.Sequential(nn.Linear(7, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 3))
for i in (0, 2, 4):
    body[i] = LoRA(body[i])
trainable = [p for p in body.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trainable, lr=1e-2)
x, y = torch.randn(60, 7), torch.randint(0, 3, (60,))
body.train()
for step in range(12):
    loss = nn.functional.cross_entropy(body(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
body.eval()
plain = nn.Sequential(*(m.merged() if isinstance(m, LoRA) else m for m in body))
print(loss.item(), (plain(x) - body(x)).abs().max().item())
