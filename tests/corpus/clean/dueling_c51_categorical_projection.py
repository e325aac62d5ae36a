import copy

import torch
from torch import nn

torch.manual_seed(0)
ATOMS, VMIN, VMAX, GAMMA = 11, -5.0, 5.0, 0.9
support = torch.linspace(VMIN, VMAX, ATOMS)
dz = (VMAX - VMIN) / (ATOMS - 1)


class C51(nn.Module):
    def __init__(self, obs=3, acts=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 24), nn.ReLU())
        self.adv, self.val = nn.Linear(24, acts * ATOMS), nn.Linear(24, ATOMS)
        self.acts = acts

    def forward(self, x):
        h = self.body(x)
        a = self.adv(h).view(-1, self.acts, ATOMS)
        v = self.val(h).view(-1, 1, ATOMS)
        return (v + a - a.mean(1, keepdim=True)).log_softmax(-1)


@torch.no_grad()
def project(net, target, r, s2, done):
    best = (net(s2).exp() * support).sum(-1).argmax(-1)
    p = target(s2).exp()[torch.arange(len(s2)), best]
    tz = (r[:, None] + GAMMA * (1 - done[:, None]) * support).clamp(VMIN, VMAX)
    b = (tz - VMIN) / dz
    lo, hi = b.floor().long(), b.ceil().long()
    lo[(hi > 0) & (lo == hi)] -= 1
    hi[(lo < ATOMS - 1) & (lo == hi)] += 1
    m = torch.zeros_like(p)
    m.scatter_add_(1, lo, p * (hi.float() - b))
    m.scatter_add_(1, hi, p * (b - lo.float()))
    return m


net = C51()
target = copy.deepcopy(net)
opt = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1.5e-4)
for step in range(12):
    s, s2 = torch.randn(32, 3), torch.randn(32, 3)
    a = torch.randint(0, 2, (32,))
    r, done = (a == (s[:, 0] > 0)).float(), (torch.rand(32) < 0.1).float()
    m = project(net, target, r, s2, done)
    logp = net(s)[torch.arange(32), a]
    per = -(m * logp).sum(1)
    priorities = per.detach() + 1e-6
    weights = (priorities.mean() / priorities).clamp(max=2)
    loss = (weights * per).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    opt.step()
    if step % 5 == 4:
        target.load_state_dict(net.state_dict())
print(loss.item(), priorities.max().item())
