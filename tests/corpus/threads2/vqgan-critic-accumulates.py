# /// case
# title = "Critic optimizer of a VQGAN is never cleared"
# category = "accumulation"
# kind = "missing-zero-grad"
# kinds_also_ok = ["other-loss-in-gradient"]
# severity = "warning"
# names = ["optimizer_d", "discriminator", "zero_grad"]
# symptom = "the critic's gradient is the sum of all iterations, generator passes included"
# symptom_check = "not torch.allclose(alone, discriminator[0].weight.grad)"
# cause = "no zero_grad() for optimizer_d"
# fix = "optimizer_d.zero_grad() before its backward call"
# evidence = [
#     { url = "https://github.com/Project-MONAI/GenerativeModels/issues/102", title = "Missing zero_grad in the VQGAN tutorial" },
#     { url = "https://github.com/Hsintien-Ng/idinvert_pytorch-reproduced/issues/1", title = "optimizer_D.zero_grad() missing?" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)


class VQ(nn.Module):
    def __init__(self, n_codes=16, dim=4):
        super().__init__()
        self.codebook = nn.Embedding(n_codes, dim)
        self.codebook.weight.data.uniform_(-1 / n_codes, 1 / n_codes)

    def forward(self, z):
        d = torch.cdist(z, self.codebook.weight)
        q = self.codebook(d.argmin(-1))
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z)
        return z + (q - z).detach(), loss


encoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
quantizer = VQ()
decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 12))
discriminator = nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

optimizer_g = torch.optim.Adam(
    [*encoder.parameters(), *quantizer.parameters(), *decoder.parameters()], lr=3e-4
)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=5e-4)
adv_weight = 0.01

for epoch in range(3):
    for images in torch.rand(4, 8, 12):
        optimizer_g.zero_grad(set_to_none=True)
        recon, vq_loss = quantizer(encoder(images))
        recon = decoder(recon)
        fake_score = discriminator(recon)
        g_loss = F.l1_loss(recon, images) + vq_loss + adv_weight * (fake_score - 1).pow(2).mean()
        g_loss.backward()  #! also
        optimizer_g.step()

#+         optimizer_d.zero_grad(set_to_none=True)
        loss_fake = discriminator(recon.detach()).pow(2).mean()
        loss_real = (discriminator(images) - 1).pow(2).mean()
        d_loss = adv_weight * 0.5 * (loss_fake + loss_real)
        alone = torch.autograd.grad(d_loss, discriminator[0].weight, retain_graph=True)[0]
        d_loss.backward()  #! here
        optimizer_d.step()  #! here
print(g_loss.item(), d_loss.item())
