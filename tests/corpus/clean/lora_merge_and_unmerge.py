import math

import torch
from torch import nn

torch.manual_seed(0)


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base, self.scale, self.merged = base, alpha / r, False
        for p in base.parameters():
            p.requires_grad_(False)
        self.A = nn.Parameter(torch.empty(r, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))

    def train(self, mode=True):
        super().train(mode)
        if mode and self.merged:
            self.base.weight.data -= self.scale * (self.B @ self.A).data
            self.merged = False
        if not mode and not self.merged:
            self.base.weight.data += self.scale * (self.B @ self.A).data
            self.merged = True
        return self

    def forward(self, x):
        y = self.base(x)
        return y if self.merged else y + self.scale * (x @ self.A.T @ self.B.T)


backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
X, Y = torch.randn(64, 8), torch.randn(64, 1)
pre = torch.optim.Adam(backbone.parameters(), 1e-2)
for _ in range(5):
    pre.zero_grad()
    nn.functional.mse_loss(backbone(X), Y).backward()
    pre.step()

model = nn.Sequential(LoRALinear(backbone[0]), backbone[1], LoRALinear(backbone[2]))
trainable = [p for p in model.parameters() if p.requires_grad]
print(sum(p.numel() for p in trainable), "of", sum(p.numel() for p in model.parameters()))
opt = torch.optim.AdamW(trainable, lr=5e-3)
Y2 = Y + X[:, :1]
for epoch in range(4):
    model.train()
    for xb, yb in zip(X.split(16), Y2.split(16)):
        opt.zero_grad()
        loss = (model(xb) - yb).square().mean()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(X), Y2).item())
