import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
xl = torch.randn(24, 6)
yl = xl[:, :3].argmax(1)
xu = torch.randn(120, 6)
threshold, lam = 0.6, 1.0
for step in range(12):
    i, j = torch.randint(0, 24, (8,)), torch.randint(0, 120, (24,))
    weak = xu[j] + 0.05 * torch.randn(24, 6)
    strong = xu[j] * (torch.rand(24, 6) > 0.2) + 0.2 * torch.randn(24, 6)
    logits = model(torch.cat([xl[i], weak, strong]))
    logits_x, (logits_w, logits_s) = logits[:8], logits[8:].chunk(2)
    lx = F.cross_entropy(logits_x, yl[i])
    pseudo = torch.softmax(logits_w.detach(), dim=-1)
    max_p, target = pseudo.max(-1)
    mask = max_p.ge(threshold).float()
    lu = (F.cross_entropy(logits_s, target, reduction="none") * mask).mean()
    loss = lx + lam * lu
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, lx.item(), lu.item(), mask.mean().item())
