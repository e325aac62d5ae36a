import torch
import torch.nn as nn


class LoRA(nn.Module):
    def __init__(self, base, rank=2, alpha=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T


torch.manual_seed(21)
model = nn.Sequential(LoRA(nn.Linear(8, 16)), nn.GELU(), LoRA(nn.Linear(16, 4)))
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-2)
for step in range(6):
    x, y = torch.randn(20, 8), torch.randint(0, 4, (20,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
print(loss.item(), sum(p.numel() for p in trained))
