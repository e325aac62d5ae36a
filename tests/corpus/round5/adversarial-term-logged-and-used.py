# /// case
# title = "A term is replaced by its number for logging, and then summed"
# category = "graph-break"
# kind = "constant-loss-term"
# kinds_also_ok = ["graph-break-item", "graph-break-detach"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["loss_adv", "loss_meter"]
# symptom = "the adversarial term is a constant of the generator's loss"
# symptom_check = "not torch.is_tensor(loss_adv) or not loss_adv.requires_grad"
# cause = "the name that is summed was rebound to a detached number to save memory"
# fix = "detach only what is logged"
# evidence = [
#     { url = "https://github.com/guopengf/FL-MRCM/issues/10", title = "Question of loss_adv_g" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(19)


class LocalUpdate:
    """Training of one site with a discriminator on latent features."""

    def __init__(self, recon, discriminator, lr=1e-3):
        self.recon, self.disc = recon, discriminator
        self.opt = torch.optim.Adam(recon.parameters(), lr=lr)
        self.opt_d = torch.optim.Adam(discriminator.parameters(), lr=lr)
        self.bce = nn.BCEWithLogitsLoss()
        self.loss_meter = {"recon": [], "adv": []}


enc, dec = nn.Sequential(nn.Linear(28, 12), nn.Tanh()), nn.Linear(12, 28)
site = LocalUpdate(nn.Sequential(enc, dec), nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1)))
for epoch in range(5):
    source, target = torch.randn(16, 28), torch.randn(16, 28) + 0.3
    # the discriminator tells source from target
    f_s, f_t = enc(source).detach(), enc(target).detach()
    loss_d = site.bce(site.disc(f_s), torch.ones(16, 1)) + site.bce(site.disc(f_t), torch.zeros(16, 1))
    site.opt_d.zero_grad()
    loss_d.backward()
    site.opt_d.step()

    # reconstruction, and features that cannot be told apart
    z = enc(source)
    loss_rec = (dec(z) - source).abs().mean()
    site.disc.requires_grad_(False)
    loss_adv = site.bce(site.disc(enc(target)), torch.ones(16, 1))
    site.disc.requires_grad_(True)
    site.loss_meter["recon"].append(loss_rec.item())
    loss_adv = loss_adv.detach().item()  #- here
    site.loss_meter["adv"].append(loss_adv)  #-
#+     site.loss_meter["adv"].append(loss_adv.detach().item())
    loss = loss_rec + 0.1 * loss_adv  #! also
    site.opt.zero_grad()
    loss.backward()
    site.opt.step()
print(site.loss_meter)
