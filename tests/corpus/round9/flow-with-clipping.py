# /// case
# title = "Clipping is given the generator of parameters that the optimizer has used up"
# category = "optimizer"
# kind = "exhausted-parameter-generator"
# kinds_also_ok = ["clipping-does-nothing", "generator-used-twice"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["params", "clip_grad_norm_"]
# symptom = "the norm is 0 in each iteration and nothing is clipped"
# symptom_check = "max(norms) == 0.0"
# cause = "parameters() is a generator; the optimizer's constructor runs through it, and clip_grad_norm_ finds it empty."
# fix = "params = list(func.parameters())"
# ///
import argparse

import torch
from torch import nn


class VectorField(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, t, y):
        return self.net(y ** 3)


def odeint(func, y0, times):
    path = [y0]
    for t0, t1 in zip(times[:-1], times[1:]):
        h, y = t1 - t0, path[-1]
        k1 = func(t0, y)
        k2 = func(t0 + h / 2, y + h / 2 * k1)
        path.append(y + h * k2)
    return torch.stack(path)


def spiral(y0, times):
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    with torch.no_grad():
        return odeint(lambda t, y: (y ** 3) @ matrix, y0, times)


def train(options):
    torch.manual_seed(options.seed)
    times = torch.linspace(0.0, 1.5, 16)
    func = VectorField(options.hidden)
    params = func.parameters()  #- here
#+     params = list(func.parameters())
    optimizer = torch.optim.Adam(params, lr=options.lr)  #! also
    norms = []
    for _ in range(options.iterations):
        y0 = 1.2 * torch.randn(options.batch, 2).clamp(-1, 1)
        target = spiral(y0, times)
        loss = (odeint(func, y0, times) - target).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        norms.append(float(nn.utils.clip_grad_norm_(params, options.clip)))  #! here
        optimizer.step()
    return func, loss.item(), norms


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=6)
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--lr", type=float, default=1e-2)
parser.add_argument("--batch", type=int, default=24)
parser.add_argument("--iterations", type=int, default=20)
parser.add_argument("--clip", type=float, default=0.1)
func, final, norms = train(parser.parse_args([]))
print(f"loss {final:.4f}, largest norm {max(norms):.3f}")
