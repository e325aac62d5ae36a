import torch
import torch.nn as nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        self.reset()

    def reset(self):
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.scale * self.up(self.down(x))


def inject(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, LoRALinear(child))
        else:
            inject(child)
    return module


torch.manual_seed(60)
model = inject(nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 5)))
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
x, y = torch.randn(64, 12), torch.randint(0, 5, (64,))
for step in range(8):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
