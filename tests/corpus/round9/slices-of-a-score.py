# /// case
# title = "Sliced score matching needs the energy's second derivative, and the network is piecewise linear"
# category = "higher-order"
# kind = "second-derivative-of-relu"
# kinds_also_ok = ["piecewise-linear-network-in-second-order-loss", "zero-second-derivative", "zero-hessian"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["ReLU", "EnergyModel", "curvature", "along"]
# symptom = "the curvature is zero in every step; what is left of the loss makes the energy flat"
# symptom_check = "all(entry[1] == 0 for entry in log)"
# cause = "A ReLU network is piecewise linear in its input: its second derivative is zero, and the trace term of score matching vanishes."
# fix = "a smooth activation, such as Softplus or SiLU"
# ///
import torch
from torch import nn


class EnergyModel(nn.Module):
    def __init__(self, dim=2, width=48, depth=3):
        super().__init__()
        sizes = [dim] + [width] * depth
        layers = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]  #- here
#+             layers += [nn.Linear(inputs, outputs), nn.Softplus()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1, bias=False))

    def forward(self, x):
        return self.net(x)

    def score(self, x):
        x = x.requires_grad_(True)
        return -torch.autograd.grad(self(x).sum(), x, create_graph=True)[0], x


def sliced_score_matching(model, x, slices=2):
    x = x.repeat(slices, 1)
    direction = torch.randn_like(x)
    score, x = model.score(x)
    along = torch.autograd.grad((score * direction).sum(), x, create_graph=True)[0]  #! also
    curvature = (along * direction).sum(1)  #! also
    length = 0.5 * score.square().sum(1)
    return (curvature + length).mean(), curvature.mean(), length.mean()  #! also


def mixture(count):
    centre = torch.tensor([[-1.0, 0.0], [1.0, 0.5]])[torch.randint(0, 2, (count,))]
    return centre + 0.3 * torch.randn(count, 2)


torch.manual_seed(31)
model = EnergyModel()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)
log = []
for step in range(18):
    loss, curvature, length = sliced_score_matching(model, mixture(64))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    log.append((loss.item(), curvature.item(), length.item()))
print(log[0], log[-1])
