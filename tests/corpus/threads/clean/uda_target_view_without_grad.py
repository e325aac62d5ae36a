import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Dropout(0.2), nn.Linear(20, 3))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(10):
    x, y, u = torch.randn(16, 10), torch.randint(0, 3, (16,)), torch.randn(48, 10)
    supervised = F.cross_entropy(net(x), y)
    with torch.no_grad():
        guess = net(u).softmax(-1)
        keep = (guess.max(-1).values > 0.35).float()
    strong = net(u + 0.2 * torch.randn_like(u)).log_softmax(-1)
    consistency = (F.kl_div(strong, guess, reduction="none").sum(-1) * keep).mean()
    opt.zero_grad()
    (supervised + consistency).backward()
    opt.step()
print(supervised.item())
