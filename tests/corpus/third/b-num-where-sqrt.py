# /// case
# title = "torch.where does not stop the NaN of the branch not taken"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["stabilise", "where", "sqrt"]
# difficulty = "hard"
# symptom = "The loss is finite, gradients are NaN as soon as one rate is below -3/8; then all parameters."
# symptom_check = "net.fc2.weight.isnan().any() and losses[0] == losses[0]"
# cause = "torch.where selects the linear branch in the forward, but the backward multiplies 0 with the NaN derivative of sqrt at a negative value in the branch not taken."
# fix = "Clamp the argument of the sqrt to its valid range before taking the root."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/187297" }, { url = "https://github.com/pytorch/pytorch/issues/68425" }, { url = "https://github.com/Ciela-Institute/caustics/pull/83" }]
# ///
# Count regression on the variance-stabilised (Anscombe) scale.
import torch
from torch import nn

torch.manual_seed(0)
SHIFT = 3 / 8


class RateNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 16)
        self.fc2 = nn.Linear(16, 1)

    def forward(self, x):
        return 2 * self.fc2(torch.tanh(self.fc1(x))).squeeze(-1)


def stabilise(rate):
    """2 * sqrt(rate + 3/8), continued linearly below -3/8."""
    shifted = rate + SHIFT
    root = 2 * torch.sqrt(shifted)  #- here
#+     root = 2 * torch.sqrt(shifted.clamp(min=1e-3))
    return torch.where(shifted > 1e-3, root, shifted)  #! here


x = torch.rand(200, 3)
count = torch.poisson(0.2 + 3 * x[:, 0])
target = stabilise(count)
net = RateNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
losses = []
for step in range(30):
    loss = nn.functional.mse_loss(stabilise(net(x)), target)  #! also
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
