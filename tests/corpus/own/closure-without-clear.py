# /// case
# category = "gradient"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Curve(nn.Module):
    def __init__(self):
        super().__init__()
        self.coef = nn.Parameter(torch.zeros(4))

    def forward(self, t):
        powers = torch.stack([t**k for k in range(4)], dim=-1)
        return powers @ self.coef


t = torch.linspace(-1, 1, 50)
target = 1 - 2 * t + 0.5 * t**3
curve = Curve()
solver = torch.optim.LBFGS(curve.parameters(), lr=0.5, max_iter=5)


def closure():
#+     solver.zero_grad()
    loss = ((curve(t) - target) ** 2).mean()
    loss.backward()  #! here
    return loss


for epoch in range(5):
    value = solver.step(closure)  #! also
    print(epoch, value.item())
print(curve.coef.data)
