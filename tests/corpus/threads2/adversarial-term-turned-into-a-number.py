# /// case
# title = "Adversarial term overwritten by its value for the log"
# category = "graph-break"
# kind = "graph-break-item"
# kinds_also_ok = ["graph-break-detach", "constant-loss-term"]
# severity = "warning"
# names = ["loss_adv", "item"]
# symptom = "the adversarial term is a Python float: the encoder never learns to confuse the domain net"
# symptom_check = "isinstance(site.loss_adv, float)"
# cause = "detach().item() is assigned back before the sum"
# fix = "keep the tensor for the sum and append its value"
# evidence = [
#     { url = "https://github.com/guopengf/FL-MRCM/issues/10", title = "Question of loss_adv_g" },
# ]
# ///
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
        self.loss_adv = self.loss_adv.detach().item()  #- here
        self.history["adv"].append(self.loss_adv)  #-
#+         self.history["adv"].append(self.loss_adv.detach().item())
        total = loss_rec + self.lam * self.loss_adv  #! also
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
