import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class EMAQuantizer(nn.Module):
    def __init__(self, k=16, d=4, decay=0.9, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        embed = torch.randn(k, d)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.zeros(k))
        self.register_buffer("embed_avg", embed.clone())

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        dist = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embed.t() + self.embed.pow(2).sum(1)
        ind = dist.argmin(1)
        onehot = F.one_hot(ind, len(self.embed)).type(flat.dtype)
        quant = F.embedding(ind, self.embed).view_as(z)
        if self.training:
            with torch.no_grad():
                self.cluster_size.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
                self.embed_avg.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
                n = self.cluster_size.sum()
                size = (self.cluster_size + self.eps) / (n + len(self.embed) * self.eps) * n
                self.embed.copy_(self.embed_avg / size.unsqueeze(1))
        commit = (quant.detach() - z).pow(2).mean()
        quant = z + (quant - z).detach()
        return quant, commit, ind


encoder, quantizer, decoder = nn.Linear(8, 4), EMAQuantizer(), nn.Linear(4, 8)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
data = torch.randn(128, 8)
for epoch in range(3):
    for x in data.split(32):
        q, commit, ind = quantizer(encoder(x))
        recon = decoder(q)
        loss = F.mse_loss(recon, x) + 0.25 * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), ind.unique().numel())
