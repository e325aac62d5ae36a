# /// case
# title = "Feature-capture hook returns the detached activation"
# category = "hooks"
# kind = "forward-hook-replaces-output"
# severity = "warning"
# severity_by_writer = "error"
# names = ["capture", "register_forward_hook", "feat", "neck"]
# difficulty = "hard"
# symptom = "Layers below the hooked module never get a gradient; silent, the head trains."
# symptom_check = "net.stem.weight.grad is None"
# cause = "A forward hook's return value replaces the module output; the capture hook returns output.detach(), which cuts the graph there."
# fix = "Store the detached tensor and return nothing."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/57157" }, { url = "https://github.com/pytorch/pytorch/issues/38951" }]
# ///
"""Classifier with a feature bank for nearest-neighbour monitoring."""
import torch
import torch.nn.functional as F
from torch import nn


class FeatureBank:
    """Keeps the last activations of one module."""

    def __init__(self, module, size=256):
        self.size, self.rows = size, []
        self.handle = module.register_forward_hook(self.capture)  #! here

    def capture(self, module, args, output):
        feat = output.detach()
        self.rows.append(feat)
        while sum(len(r) for r in self.rows) > self.size:
            self.rows.pop(0)
        return feat  #- here

    def spread(self):
        return torch.cat(self.rows).std(0).mean().item()

    def close(self):
        self.handle.remove()


class ResidualMLP(nn.Module):
    def __init__(self, n_in, width, classes, depth=2):
        super().__init__()
        self.stem = nn.Linear(n_in, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.neck = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = x + b(x)
        return self.head(self.neck(x))  #! also


def spirals(n, gen):
    c = torch.randint(0, 3, (n,), generator=gen)
    r = torch.rand(n, generator=gen)
    a = 4 * r + c * 2.094
    return torch.stack([r * a.cos(), r * a.sin()], 1) * 3, c


torch.manual_seed(0)
gen = torch.Generator().manual_seed(2)
net = ResidualMLP(2, 24, 3)
bank = FeatureBank(net.neck)  #! here
opt = torch.optim.AdamW(net.parameters(), lr=5e-3)
for step in range(40):
    x, c = spirals(96, gen)
    loss = F.cross_entropy(net(x), c)
    opt.zero_grad()
    loss.backward()
    opt.step()
bank.close()
print("loss", loss.item(), "feature spread", bank.spread())
