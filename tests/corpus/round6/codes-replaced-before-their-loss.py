# /// case
# title = "The codebook loss sees the straight-through output"
# category = "graph-break"
# kind = "straight-through-before-loss"
# kinds_also_ok = ["parameter-without-gradient", "graph-break-detach"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["codes", "detach"]
# symptom = "the codebook has no gradient"
# symptom_check = "quantizer.codes.weight.grad is None"
# cause = "the codes are detached in the straight-through sum, from which the codebook loss is computed"
# fix = "compute the losses of the codes themselves"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Quantizer(nn.Module):
    def __init__(self, n_codes=16, dim=4, beta=0.25):
        super().__init__()
        self.codes = nn.Embedding(n_codes, dim)
        self.beta = beta

    def forward(self, z):
        index = torch.cdist(z, self.codes.weight).argmin(1)
        q = z + (self.codes(index) - z).detach()  #- here
#+         q = self.codes(index)
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(q.detach(), z)  #! also
        return q, loss  #-
#+         return z + (q - z).detach(), loss


encoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 12))
quantizer = Quantizer()
params = [p for m in (encoder, decoder, quantizer) for p in m.parameters()]
opt = torch.optim.Adam(params, lr=2e-3)
data = torch.randn(96, 12)

for it in range(8):
    q, vq_loss = quantizer(encoder(data))
    recon = F.mse_loss(decoder(q), data)
    opt.zero_grad()
    (recon + vq_loss).backward()
    opt.step()
print(recon.item(), vq_loss.item())
