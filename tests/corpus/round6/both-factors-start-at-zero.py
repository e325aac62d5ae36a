# /// case
# title = "Both low-rank factors are zero"
# category = "scale"
# kind = "zero-gradient-init"
# kinds_also_ok = ["saddle-point-init", "dead-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zeros_", "up", "down"]
# symptom = "all gradients are zero for ever"
# symptom_check = "all(p.grad.abs().max() == 0 for p in model.parameters() if p.requires_grad)"
# cause = "each factor's gradient has the other as a factor"
# fix = "only one of them zero"
# ///
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
        for layer in (self.down, self.up):  #- also
            nn.init.zeros_(layer.weight)  #- here
#+         nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.scale * self.up(self.down(x))  #! also


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
