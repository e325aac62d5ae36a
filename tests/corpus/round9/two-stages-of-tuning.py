# /// case
# title = "The second stage sets `require_grad`, and the trunk stays frozen"
# category = "flags"
# kind = "misspelt-requires-grad"
# kinds_also_ok = ["never-unfrozen", "attribute-typo", "frozen-parameters"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["require_grad", "trunk"]
# symptom = "no parameter of the trunk ever gets a gradient"
# symptom_check = "all(p.grad is None and not p.requires_grad for p in net.trunk.parameters())"
# cause = "Assigning to require_grad makes a new attribute of the tensor; requires_grad stays False."
# fix = "requires_grad"
# ///
import torch
from torch import nn


class AtomTypes(nn.Module):
    def __init__(self, types=5, width=16):
        super().__init__()
        self.table = nn.Embedding(types, width)
        self.dense = nn.Linear(width, width)

    def forward(self, composition):
        return torch.tanh(self.dense(composition @ self.table.weight))


class FormationEnergy(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = AtomTypes()
        self.readout = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, composition):
        return self.readout(self.trunk(composition)).squeeze(-1)


class Tuner:
    def __init__(self, net, data, lr):
        self.net, self.data = net, data
        self.optimizer = torch.optim.Adam(net.parameters(), lr=lr)

    def stage(self, epochs, trunk):
        for p in self.net.trunk.parameters():
            p.require_grad = trunk  #- here
#+             p.requires_grad = trunk
        for _ in range(epochs):
            last = self.epoch()
        return last

    def epoch(self):
        total = 0.0
        for composition, energy in self.data:
            loss = nn.functional.mse_loss(self.net(composition), energy)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.data)


def mixtures(count):
    composition = torch.distributions.Dirichlet(torch.full((5,), 0.7)).sample((count,))
    cost = torch.tensor([0.2, -1.0, 0.5, 0.9, -0.4])
    return composition, composition @ cost + (composition[:, 0] * composition[:, 3]) * 4


torch.manual_seed(23)
net = FormationEnergy()
net.trunk.requires_grad_(False)  #! also
tuner = Tuner(net, [mixtures(32) for _ in range(4)], lr=1e-2)
print("readout only", round(tuner.stage(3, trunk=False), 4))
print("everything", round(tuner.stage(4, trunk=True), 4))  #! also
