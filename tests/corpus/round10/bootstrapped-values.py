# /// case
# title = "List multiplication puts the same head into the ensemble six times"
# category = "identity"
# kind = "one-module-many-times"
# kinds_also_ok = ["shared-module-by-list-multiplication", "ensemble-members-identical", "unintended-weight-sharing"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["heads", "ModuleList"]
# symptom = "all heads agree everywhere: the uncertainty is zero, also far from the data"
# symptom_check = "float(spread.max()) == 0.0 and len(set(map(id, net.heads))) == 1"
# cause = "[module] * n repeats one object, so all heads share their parameters."
# fix = "build a new module for each entry"
# ///
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    heads: int = 6
    width: int = 32
    keep: float = 0.6
    epochs: int = 60
    lr: float = 5e-3


class BootstrappedValue(nn.Module):
    def __init__(self, obs_dim, width, heads):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(obs_dim, width), nn.ReLU())
        self.heads = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))] * heads)  #- here
#+         self.heads = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)) for _ in range(heads))

    def forward(self, obs):
        z = self.stem(obs)
        return torch.stack([head(z).squeeze(-1) for head in self.heads])  #! also


def visited_states(count):
    obs = torch.randn(count, 2) * torch.tensor([0.6, 0.3]) + torch.tensor([-0.5, 0.2])
    returns = torch.sin(2 * obs[:, 0]) - obs[:, 1].square() + 0.1 * torch.randn(count)
    return obs, returns


def fit(net, obs, returns, settings):
    masks = (torch.rand(settings.heads, len(obs)) < settings.keep).float()
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.lr)
    for _ in range(settings.epochs):
        for rows in torch.randperm(len(obs)).split(64):
            error = (net(obs[rows]) - returns[rows]).square()
            mask = masks[:, rows]
            loss = (mask * error).sum() / mask.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield loss.item()


torch.manual_seed(50)
settings = Settings()
obs, returns = visited_states(256)
net = BootstrappedValue(2, settings.width, settings.heads)
curve = list(fit(net, obs, returns, settings))
with torch.no_grad():
    values = net(torch.cat([obs[:20], torch.rand(20, 2) * 3 + 1]))
spread = values.std(0)  #! also
print("loss", curve[0], curve[-1])
print("spread seen", spread[:20].mean().item(), "unseen", spread[20:].mean().item())
