import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Spike(torch.autograd.Function):
    scale = 10.0

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g / (Spike.scale * v.abs() + 1.0) ** 2


class SNN(nn.Module):
    def __init__(self, i=20, h=30, o=2, alpha=0.9, beta=0.8):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(i, h) * 1.5 / i**0.5)
        self.w2 = nn.Parameter(torch.randn(h, o) * 1.5 / h**0.5)
        self.alpha, self.beta = alpha, beta

    def forward(self, x):
        B = x.size(0)
        syn = mem = torch.zeros(B, self.w1.size(1))
        flt = out = torch.zeros(B, self.w2.size(1))
        rec, spikes = [], []
        for t in range(x.size(1)):
            s = Spike.apply(mem - 1.0)
            reset = s.detach()
            syn = self.alpha * syn + x[:, t] @ self.w1
            mem = (self.beta * mem + syn) * (1.0 - reset)
            flt = self.alpha * flt + s @ self.w2
            out = self.beta * out + flt
            rec.append(out)
            spikes.append(s)
        return torch.stack(rec, 1), torch.stack(spikes, 1)


net = SNN()
opt = torch.optim.Adamax(net.parameters(), lr=5e-3)
x = (torch.rand(16, 15, 20) < 0.15).float()
y = torch.randint(0, 2, (16,))
for e in range(5):
    out, spk = net(x)
    loss = F.nll_loss(F.log_softmax(out.max(1).values, 1), y) + 1e-5 * spk.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(e, loss.item(), spk.mean().item())
