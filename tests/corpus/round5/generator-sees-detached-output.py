# /// case
# title = "The generator's adversarial loss is computed on a detached spectrogram"
# category = "graph-break"
# kind = "graph-break-detach"
# kinds_also_ok = ["constant-loss-term", "partial-graph-break"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["fake_spec", "g_loss1"]
# symptom = "the adversarial loss sends nothing to the decoder; only the reconstruction trains it"
# symptom_check = "adv_reach is None"
# cause = "detach() belongs into the discriminator's step alone"
# fix = "no detach in the generator's step"
# evidence = [
#     { url = "https://github.com/nikhilsinghmus/image2reverb/issues/37", title = "Is fake_spec.detach() in Generator training step intentional?" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


class Image2Spec(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(30, 16), nn.ReLU())
        self.dec = nn.Linear(16, 40)

    def forward(self, image):
        f = self.enc(image)
        return self.dec(f), f


class Disc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(40 + 16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, spec, f):
        return self.net(torch.cat([spec, f], dim=1))


class Module:
    """Two optimizers, as a lightning module would have them."""

    def __init__(self):
        self.g, self.d = Image2Spec(), Disc()
        self.opts = [torch.optim.Adam(self.g.parameters(), 1e-3), torch.optim.Adam(self.d.parameters(), 1e-3)]

    def training_step(self, batch, optimizer_idx):
        image, spec = batch
        fake_spec, f = self.g(image)
        if optimizer_idx == 0:
            self.d.requires_grad_(False)
            d_fake = self.d(fake_spec.detach(), f.detach())  #- here
#+             d_fake = self.d(fake_spec, f.detach())
            g_loss1 = F.mse_loss(d_fake, torch.ones_like(d_fake))  #! also
            g_loss2 = F.l1_loss(fake_spec, spec)
            self.last_terms = g_loss1, g_loss2
            return g_loss1 + 100 * g_loss2
        self.d.requires_grad_(True)
        d_fake = self.d(fake_spec.detach(), f.detach())
        d_real = self.d(spec, f.detach())
        return F.mse_loss(d_real, torch.ones_like(d_real)) + F.mse_loss(d_fake, torch.zeros_like(d_fake))


module = Module()
for it in range(6):
    batch = torch.randn(8, 30), torch.randn(8, 40)
    for idx, opt in enumerate(module.opts):
        loss = module.training_step(batch, idx)
        opt.zero_grad()
        if idx == 0:
            adv = module.last_terms[0]
            adv_reach = torch.autograd.grad(adv, module.g.dec.weight, retain_graph=True, allow_unused=True)[0] if adv.requires_grad else None
        loss.backward()
        opt.step()
    print(it, loss.item())
