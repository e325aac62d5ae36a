import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(11)


class LocalUpdate:
    """One site of a federated reconstruction run."""

    def __init__(self, lr=2e-3, lam=0.1):
        self.encoder = nn.Sequential(nn.Linear(16, 12), nn.Tanh())
        self.decoder = nn.Linear(12, 16)
        self.domain = nn.Sequential(nn.Linear(12, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        self.opt_rec = torch.optim.Adam([*self.encoder.parameters(), *self.decoder.parameters()], lr=lr)
        self.opt_dom = torch.optim.Adam(self.domain.parameters(), lr=lr)
        self.lam = lam
        self.history = {"rec": [], "adv": []}

    def step_domain(self, source, target):
        logits = self.domain(self.encoder(torch.cat([source, target])).detach())
        truth = torch.cat([torch.ones(len(source), 1), torch.zeros(len(target), 1)])
        self.opt_dom.zero_grad()
        F.binary_cross_entropy_with_logits(logits, truth).backward()
        self.opt_dom.step()

    def step_reconstruction(self, source, target):
        code = self.encoder(source)
        loss_rec = F.l1_loss(self.decoder(code), source)
        confusion = self.domain(self.encoder(target))
        self.loss_adv = F.binary_cross_entropy_with_logits(confusion, torch.ones_like(confusion))
        self.history["adv"].append(self.loss_adv.detach().item())
        total = loss_rec + self.lam * self.loss_adv
        self.opt_rec.zero_grad()
        total.backward()
        self.opt_rec.step()
        self.history["rec"].append(loss_rec.item())


site = LocalUpdate()
for epoch in range(6):
    source, target = torch.randn(20, 16), torch.randn(20, 16) * 1.5
    site.step_domain(source, target)
    site.step_reconstruction(source, target)
print(site.history["rec"][-1], float(site.loss_adv))
