import torch
from torch import nn

torch.manual_seed(9)


class Probe:
    def __init__(self, layer):
        self.feats = None
        self.handle = layer.register_forward_hook(self.record)

    def record(self, module, args, output):
        self.feats = output


gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
disc = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).requires_grad_(False)
probe = Probe(disc[0])
opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
for i in range(10):
    real = torch.randn(32, 6) + 2
    disc(real)
    real_feats = probe.feats.mean(0).detach()
    fake = gen(torch.randn(32, 4))
    adversarial = nn.functional.softplus(-disc(fake)).mean()
    matching = (probe.feats.mean(0) - real_feats).square().sum()
    g_loss = adversarial + 10 * matching
    opt.zero_grad()
    g_loss.backward()
    opt.step()
print(g_loss.item())
