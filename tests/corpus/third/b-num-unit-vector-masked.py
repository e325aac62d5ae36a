# /// case
# title = "Unit vector of a standing agent is 0/0, hidden by masked_fill"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["unit", "norm", "err"]
# difficulty = "hard"
# symptom = "NaN gradients in the first step although the loss is finite."
# symptom_check = "losses[0] == losses[0] and net.dir.weight.isnan().any()"
# cause = "Predicted displacements of standing agents are exactly 0 (speed is a relu); v / |v| is 0/0. masked_fill hides the NaN in the forward, the backward of the division still gives NaN."
# fix = "Select the moving agents before the division."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/16317" }, { url = "https://github.com/pytorch/pytorch/issues/36923" }, { url = "https://github.com/pytorch/pytorch/issues/52248" }]
# ///
"""Trajectory prediction with a displacement and a direction loss."""
import torch
from torch import nn


class TrajectoryNet(nn.Module):
    def __init__(self, history=4, hidden=32):
        super().__init__()
        self.enc = nn.GRU(2, hidden, batch_first=True)
        self.dir = nn.Linear(hidden, 2)
        self.speed = nn.Linear(hidden, 1)

    def forward(self, past):
        _, h = self.enc(past)
        h = h.squeeze(0)
        speed = torch.relu(self.speed(h))  #! also
        return speed * torch.tanh(self.dir(h))


def unit(v):
    return v / v.norm(dim=-1, keepdim=True)  #! here


def direction_loss(velocity, target):
    moving = (target.norm(dim=-1) > 0.05) & (velocity.detach().norm(dim=-1) > 1e-4)
    err = 1 - (unit(velocity) * unit(target)).sum(-1)  #- here
    return err.masked_fill(~moving, 0.0).sum() / moving.sum().clamp(min=1)  #- here
#+     err = 1 - (unit(velocity[moving]) * unit(target[moving])).sum(-1)
#+     return err.sum() / moving.sum().clamp(min=1)


def scene(n=64):
    v = torch.randn(n, 2) * (torch.rand(n, 1) > 0.3)
    past = torch.cumsum(v[:, None] + 0.05 * torch.randn(n, 4, 2), 1)
    return past - past[:, -1:], v


torch.manual_seed(0)
net = TrajectoryNet()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
losses = []
for step in range(15):
    past, v = scene()
    pred = net(past)
    loss = nn.functional.smooth_l1_loss(pred, v) + 0.1 * direction_loss(pred, v)  #! also
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
