import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes=16, dim=8, beta=0.25):
        super().__init__()
        self.codebook = nn.Embedding(n_codes, dim)
        self.codebook.weight.data.uniform_(-0.5, 0.5)
        self.beta = beta

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        distance = torch.cdist(flat.detach(), self.codebook.weight.detach())
        codes = distance.argmin(dim=1)
        quantized = self.codebook(codes)
        codebook_loss = F.mse_loss(quantized, flat.detach())
        commitment = F.mse_loss(flat, quantized.detach())
        quantized = flat + (quantized - flat).detach()
        n, c, h, w = z.shape
        return quantized.view(n, h, w, c).permute(0, 3, 1, 2), codebook_loss + self.beta * commitment, codes


class VQVAE(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, dim, 4, stride=2, padding=1)
        )
        self.quantizer = VectorQuantizer(dim=dim)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(dim, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        quantized, vq_loss, codes = self.quantizer(self.encoder(x))
        return self.decoder(quantized), vq_loss, codes


def sprites(n, size=16):
    x = torch.zeros(n, 1, size, size)
    for i in range(n):
        r, c, s = torch.randint(1, 9, (3,)).tolist()
        x[i, 0, r:r + s // 2 + 2, c:c + s // 2 + 2] = 1.0
    return x


torch.manual_seed(1)
torch.set_num_threads(1)
data = sprites(128)
model = VQVAE()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for idx in torch.randperm(len(data)).split(32):
        recon, vq_loss, codes = model(data[idx])
        recon_loss = F.mse_loss(recon, data[idx])
        loss = recon_loss + vq_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 2 == 0:
        print(f"epoch {epoch} recon {recon_loss.item():.4f} vq {vq_loss.item():.4f} codes used {codes.unique().numel()}")
