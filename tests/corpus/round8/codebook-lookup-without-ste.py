# /// case
# title = "The decoder of a vector-quantised autoencoder reads the code itself, without straight-through"
# category = "graph-break"
# kind = "quantisation-blocks-gradient"
# kinds_also_ok = ["missing-straight-through", "non-differentiable-op"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["nearest", "codes", "decoder"]
# symptom = "the encoder never gets a gradient"
# symptom_check = "all(p.grad is None for p in vq.encoder.parameters())"
# cause = "argmin and the lookup have no derivative, and the decoder gets the code as it is, so that the reconstruction loss does not reach the encoder."
# fix = "z + (code - z).detach()"
# ///
import torch
from torch import nn
from torch.nn import functional as F


class Autoencoder(nn.Module):
    def __init__(self, width=6, codes=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, width))
        self.decoder = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 16))
        self.codes = nn.Embedding(codes, width)

    def nearest(self, z):
        distance = torch.cdist(z, self.codes.weight)
        return self.codes(distance.argmin(1))  #! also

    def forward(self, x):
        z = self.encoder(x)
        code = self.nearest(z)  #! here
        codebook_loss = F.mse_loss(code, z.detach())  #! also
        return self.decoder(code), codebook_loss  #- here
#+         return self.decoder(z + (code - z).detach()), codebook_loss


def sample(n):
    phase = torch.rand(n, 1) * 6.28
    return torch.sin(phase + torch.linspace(0, 6.28, 16)) + 0.05 * torch.randn(n, 16)


torch.manual_seed(40)
vq = Autoencoder()
optimizer = torch.optim.Adam(vq.parameters(), lr=3e-3)
for step in range(20):
    x = sample(64)
    output, codebook_loss = vq(x)
    reconstruction = F.mse_loss(output, x)
    loss = reconstruction + codebook_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, reconstruction.item(), codebook_loss.item())
