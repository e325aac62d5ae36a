# /// case
# title = "The members of the ensemble are held in a Python list and so are not registered"
# category = "optimizer"
# kind = "modules-in-plain-list"
# kinds_also_ok = ["parameters-not-registered", "missing-modulelist", "submodules-missing-from-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["members", "ModuleList", "parameters"]
# symptom = "only the bounds of the variance are trained, the networks stay random"
# symptom_check = "len(list(ensemble.parameters())) == 2"
# cause = "nn.Module does not look into lists: parameters() gives only max_logvar and min_logvar."
# fix = "nn.ModuleList([...])"
# ///
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class ProbabilisticEnsemble(nn.Module):
    def __init__(self, size, n_in, n_out, hidden):
        super().__init__()
        self.members = [  #- here
#+         self.members = nn.ModuleList([
            nn.Sequential(nn.Linear(n_in, hidden), nn.SiLU(), nn.Linear(hidden, 2 * n_out)) for _ in range(size)
        ]  #- also
#+         ])
        self.max_logvar = nn.Parameter(torch.full((n_out,), 0.5))
        self.min_logvar = nn.Parameter(torch.full((n_out,), -6.0))

    def forward(self, x):
        mean, logvar = torch.stack([m(x) for m in self.members]).chunk(2, dim=-1)
        logvar = self.max_logvar - F.softplus(self.max_logvar - logvar)
        return mean, self.min_logvar + F.softplus(logvar - self.min_logvar)

    def nll(self, x, y):
        mean, logvar = self(x)
        per_member = ((mean - y).square() * (-logvar).exp() + logvar).mean((1, 2))
        return per_member.sum() + 0.01 * (self.max_logvar.sum() - self.min_logvar.sum())


def pendulum(n, dt=0.05):
    th, om = (torch.rand(n) * 2 - 1) * 3.14, torch.randn(n) * 2
    u = torch.rand(n) * 4 - 2
    om2 = om + dt * (15 * th.sin() + 3 * u) + 0.05 * torch.randn(n)
    x = torch.stack([th.cos(), th.sin(), om, u], 1)
    return x, torch.stack([dt * om2, om2 - om], 1)


def main(cfg):
    torch.manual_seed(cfg.seed)
    x, y = pendulum(cfg.samples)
    ensemble = ProbabilisticEnsemble(cfg.members, x.shape[1], y.shape[1], cfg.hidden)
    optim = torch.optim.Adam(ensemble.parameters(), lr=cfg.lr)  #! also
    curve = []
    for _ in range(cfg.epochs):
        for rows in torch.randperm(len(x)).split(cfg.batch):
            loss = ensemble.nll(x[rows], y[rows])
            optim.zero_grad()
            loss.backward()
            optim.step()
        curve.append(loss.item())
    return ensemble, curve


parser = argparse.ArgumentParser()
parser.add_argument("--members", type=int, default=4)
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--samples", type=int, default=1000)
parser.add_argument("--epochs", type=int, default=25)
parser.add_argument("--batch", type=int, default=100)
parser.add_argument("--lr", type=float, default=5e-3)
parser.add_argument("--seed", type=int, default=6)
ensemble, curve = main(parser.parse_args([]))
print(f"nll {curve[0]:.3f} -> {curve[-1]:.3f}")
