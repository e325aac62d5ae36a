# /// case
# title = "where() chooses another branch, but the root's gradient is NaN"
# category = "numerics"
# kind = "nan-from-unselected-branch"
# kinds_also_ok = ["nan-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["where", "sqrt"]
# symptom = "NaN gradients with a finite loss"
# symptom_check = "not torch.isfinite(net[0].weight.grad).all()"
# cause = "the root of negative inputs is evaluated and its gradient multiplied by zero"
# fix = "make the root's argument safe first"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/187297", title = "torch.where backward propagates NaN gradient from inactive sqrt branch" },
#     { url = "https://github.com/Ciela-Institute/caustics/pull/83", title = "Fix nan gradients in NFW and TNFW" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(56)


def compress(x):
    """Square root above zero, a line below."""
    return torch.where(x > 0, torch.sqrt(x), 0.1 * x)  #- here
#+     safe = torch.where(x > 0, x, torch.ones_like(x))
#+     return torch.where(x > 0, torch.sqrt(safe), 0.1 * x)


class Lens:
    def __init__(self, n=40):
        self.position = torch.rand(n, 2) * 2 - 1
        self.shear = compress(1 - self.position.norm(dim=1) * 1.2)

    def batch(self, k):
        idx = torch.randperm(len(self.position))[:k]
        return self.position[idx], self.shear[idx]


lens = Lens()
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
history = []
for step in range(3):
    position, shear = lens.batch(32)
    predicted = compress(net(position).squeeze(1))
    loss = (predicted - shear).square().mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    history.append(loss.item())
    optimizer.step()
print(history)
