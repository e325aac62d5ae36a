import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
enc = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3 * 4))
dec = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 12))
optimizer = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=3e-3)
x_all = (torch.randn(96, 12) > 0).float()
tau = 1.0
for epoch in range(4):
    for i, x in enumerate(x_all.split(32)):
        logits = enc(x).view(-1, 3, 4)
        z = F.gumbel_softmax(logits, tau=tau, hard=True)
        recon = dec(z.flatten(1))
        q = F.softmax(logits, -1)
        kl = (q * (q.clamp_min(1e-9).log() - torch.log(torch.tensor(0.25)))).sum((1, 2)).mean()
        bce = F.binary_cross_entropy_with_logits(recon, x, reduction="none").sum(1).mean()
        loss = bce + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tau = max(0.5, tau * 0.8)
    print(f"epoch {epoch}: elbo {-loss.item():.3f}, tau {tau:.2f}")
