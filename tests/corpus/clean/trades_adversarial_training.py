import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def perturbed(x, eps=0.2, steps=3):
    model.eval()
    near = x + 0.001 * torch.randn_like(x)
    clean = F.softmax(model(x), dim=1).detach()
    for _ in range(steps):
        near.requires_grad_()
        with torch.enable_grad():
            gap = F.kl_div(F.log_softmax(model(near), dim=1), clean, reduction="sum")
        grad = torch.autograd.grad(gap, [near])[0]
        near = near.detach() + 0.08 * grad.sign()
        near = torch.min(torch.max(near, x - eps), x + eps)
    model.train()
    return near.detach()


for step in range(6):
    x = torch.randn(32, 8)
    y = x[:, :3].argmax(1)
    adv = perturbed(x)
    opt.zero_grad()
    logits = model(x)
    robust = F.kl_div(F.log_softmax(model(adv), dim=1), F.softmax(logits, dim=1), reduction="batchmean")
    loss = F.cross_entropy(logits, y) + 3 * robust
    loss.backward()
    opt.step()
print(loss.item())
