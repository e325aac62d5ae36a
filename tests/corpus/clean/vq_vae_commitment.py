import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class Quantizer(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(size, width))

    def forward(self, z):
        index = torch.cdist(z, self.codes).argmin(1)
        q = self.codes[index]
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


enc, dec, vq = nn.Linear(8, 4), nn.Linear(4, 8), Quantizer(6, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *vq.parameters()], lr=1e-2)
for x in torch.randn(4, 20, 8):
    q, extra, used = vq(enc(x))
    loss = F.mse_loss(dec(q), x) + extra
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item(), used.unique().numel())
