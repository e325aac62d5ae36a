import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantizer(nn.Module):
    def __init__(self, codes, dim, beta=0.25):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        nn.init.uniform_(self.codebook.weight, -0.5, 0.5)
        self.beta = beta

    def forward(self, z):
        index = torch.cdist(z, self.codebook.weight).argmin(dim=-1)
        q = self.codebook(index)
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 4))
        self.quantizer = Quantizer(12, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 9))

    def forward(self, x):
        q, vq_loss, index = self.quantizer(self.encoder(x))
        return self.decoder(q), vq_loss, index


torch.manual_seed(107)
model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x = torch.randn(4, 9).repeat(20, 1) + 0.1 * torch.randn(80, 9)
for epoch in range(5):
    used = set()
    for batch in x[torch.randperm(80)].split(20):
        recon, vq_loss, index = model(batch)
        loss = F.mse_loss(recon, batch) + vq_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        used.update(index.tolist())
    print(epoch, loss.item(), len(used))
