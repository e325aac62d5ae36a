# /// case
# title = "The straight-through step of a vector quantiser has no detach, so the gradient of the encoder cancels"
# category = "graph-break"
# kind = "straight-through-without-detach"
# kinds_also_ok = ["encoder-gets-no-gradient", "broken-straight-through-estimator", "missing-detach", "gradient-cancels"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["codes", "z", "Quantizer", "encoder"]
# symptom = "the reconstruction error gives the encoder a gradient of zero; only the commitment term moves it"
# symptom_check = "torch.autograd.grad(F.mse_loss(model(patches)[0], patches), model.encoder[0].weight)[0].abs().max().item() < 1e-9"
# cause = "Without the detach, z is added and subtracted with a gradient, so its two gradients cancel and the whole of it goes to the codebook."
# fix = "z + (codes - z).detach()"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Quantizer(nn.Module):
    def __init__(self, codes, width, beta=0.25):
        super().__init__()
        self.codebook = nn.Embedding(codes, width)
        self.beta = beta
        nn.init.normal_(self.codebook.weight, std=0.3)

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codebook.weight.detach()).argmin(1)
        codes = self.codebook(index)
        codebook_loss = F.mse_loss(codes, z.detach())
        commitment = F.mse_loss(z, codes.detach())
        codes = z + (codes - z)  #- here
#+         codes = z + (codes - z).detach()
        return codes, codebook_loss + self.beta * commitment, index  #! also


class PatchVQ(nn.Module):
    def __init__(self, pixels=16, width=6, codes=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, 32), nn.ReLU(), nn.Linear(32, width))
        self.quantizer = Quantizer(codes, width)
        self.decoder = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, pixels))

    def forward(self, patches):
        codes, loss, index = self.quantizer(self.encoder(patches))
        return self.decoder(codes), loss, index


def make_patches(count):
    phase = torch.rand(count, 1) * 6.28
    tilt = torch.randint(1, 4, (count, 1)).float()
    return torch.sin(phase + tilt * torch.linspace(0, 3, 16)) + 0.05 * torch.randn(count, 16)


torch.manual_seed(11)
model = PatchVQ()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
patches = make_patches(256)
for epoch in range(7):
    used = set()
    for batch in patches[torch.randperm(256)].split(64):
        restored, vq_loss, index = model(batch)
        loss = F.mse_loss(restored, batch) + vq_loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        used.update(index.tolist())
    print(f"{epoch}: {loss.item():.4f}, {len(used)} codes in use")
