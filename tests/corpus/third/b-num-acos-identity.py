# /// case
# title = "Geodesic rotation loss with acos at 1"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["acos", "cos", "angle"]
# difficulty = "medium"
# symptom = "NaN parameters after the first step on a batch with an exactly matching rotation."
# symptom_check = "net.out.weight.isnan().any()"
# cause = "d acos(c)/dc is infinite at c = 1; the clamp to [-1, 1] keeps c at 1 and 0 * inf gives NaN."
# fix = "Clamp to [-1 + eps, 1 - eps]."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/8069" }, { url = "https://github.com/geoopt/geoopt/pull/79" }, { url = "https://github.com/eigenvivek/nanodrr/pull/31" }]
# ///
import torch
from torch import nn


def rot_z(angle):
    c, s, z, o = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack([c, -s, z, s, c, z, z, z, o], -1).view(-1, 3, 3)


def geodesic(r1, r2):
    trace = (r1 @ r2.transpose(1, 2)).diagonal(dim1=1, dim2=2).sum(-1)
    cos = ((trace - 1) / 2).clamp(-1, 1)  #- here
#+     cos = ((trace - 1) / 2).clamp(-1 + 1e-6, 1 - 1e-6)
    return torch.acos(cos)  #! here


class YawNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(2, 24), nn.Tanh())
        self.out = nn.Linear(24, 1)
        nn.init.zeros_(self.out.bias)

    def forward(self, x):
        return self.out(self.fc(x)).squeeze(-1)


torch.manual_seed(0)
yaw = torch.linspace(-1.5, 1.5, 61)
inputs = torch.stack([yaw, yaw**3], -1) - torch.tensor([0.1, 0.05])
inputs[30] = 0.0
with torch.no_grad():
    net = YawNet()
    net.fc[0].bias.zero_()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(15):
    angle = net(inputs)
    loss = geodesic(rot_z(angle), rot_z(yaw)).mean()  #! also
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(loss.item())
