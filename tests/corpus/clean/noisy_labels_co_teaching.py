import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
nets = [nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3)) for _ in range(2)]
opts = [torch.optim.Adam(n.parameters(), lr=5e-3) for n in nets]
X = torch.randn(120, 6)
clean = X[:, :3].argmax(1)
noisy = torch.where(torch.rand(120) < 0.3, torch.randint(0, 3, (120,)), clean)
for epoch in range(3):
    remember = 1 - min(epoch / 2 * 0.3, 0.3)
    for idx in torch.randperm(120).split(40):
        a, b = (F.cross_entropy(n(X[idx]), noisy[idx], reduction="none") for n in nets)
        k = int(remember * len(idx))
        pick_a, pick_b = torch.argsort(a.data)[:k], torch.argsort(b.data)[:k]
        la = F.cross_entropy(nets[0](X[idx][pick_b]), noisy[idx][pick_b])
        lb = F.cross_entropy(nets[1](X[idx][pick_a]), noisy[idx][pick_a])
        for o, l in zip(opts, (la, lb)):
            o.zero_grad()
            l.backward()
            o.step()
    with torch.no_grad():
        print(epoch, [(n(X).argmax(1) == clean).float().mean().item() for n in nets])
