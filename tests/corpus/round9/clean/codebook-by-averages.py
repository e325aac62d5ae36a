import torch
from torch import nn
import torch.nn.functional as F


class AveragedCodebook(nn.Module):
    def __init__(self, codes, width, decay=0.9, epsilon=1e-5):
        super().__init__()
        self.decay, self.epsilon = decay, epsilon
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.codes.clone())

    @torch.no_grad()
    def update(self, z, index):
        hits = F.one_hot(index, len(self.codes)).to(z.dtype)
        self.counts.mul_(self.decay).add_(hits.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(hits.T @ z, alpha=1 - self.decay)
        total = self.counts.sum()
        smooth = (self.counts + self.epsilon) / (total + len(self.codes) * self.epsilon) * total
        self.codes.copy_(self.sums / smooth.unsqueeze(1))

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codes).argmin(1)
        quantized = self.codes[index]
        if self.training:
            self.update(z.detach(), index)
        commitment = F.mse_loss(z, quantized)
        return z + (quantized - z).detach(), commitment, index


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(1, 8, 4, stride=4)
        self.codebook = AveragedCodebook(16, 8)
        self.up = nn.ConvTranspose1d(8, 1, 4, stride=4)

    def forward(self, x):
        z = self.down(x)
        batch, width, length = z.shape
        flat, commitment, index = self.codebook(z.transpose(1, 2).reshape(-1, width))
        return self.up(flat.view(batch, length, width).transpose(1, 2)), commitment, index


torch.manual_seed(139)
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(20):
    x = torch.sin(6.28 * torch.rand(32, 1, 1) + torch.linspace(0, 9, 32))
    output, commitment, index = model(x)
    loss = F.mse_loss(output, x) + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), len(index.unique()))
