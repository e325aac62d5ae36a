import torch
from torch import nn

torch.manual_seed(6)
gen = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
features = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU()).requires_grad_(False).eval()
opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
for _ in range(5):
    noisy = torch.rand(2, 1, 10, 10)
    clean = noisy.round()
    out = gen(noisy)
    with torch.no_grad():
        wanted = features(clean)
    loss = (out - clean).abs().mean() + 0.1 * (features(out) - wanted).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
