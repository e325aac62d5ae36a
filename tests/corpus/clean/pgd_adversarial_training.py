import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Flatten(), nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=2e-4)


def pgd(model, x, y, eps=0.1, alpha=0.03, steps=4):
    adv = x.detach() + torch.empty_like(x).uniform_(-eps, eps)
    adv = adv.clamp(0, 1)
    for _ in range(steps):
        adv.requires_grad_()
        with torch.enable_grad():
            loss = F.cross_entropy(model(adv), y)
        grad = torch.autograd.grad(loss, [adv])[0]
        adv = adv.detach() + alpha * torch.sign(grad.detach())
        adv = torch.min(torch.max(adv, x - eps), x + eps)
        adv = torch.clamp(adv, 0.0, 1.0)
    return adv


X = torch.rand(60, 1, 6, 6)
Y = X.flatten(1)[:, :3].argmax(1)
for epoch in range(3):
    net.train()
    for idx in torch.randperm(60).split(20):
        net.eval()
        adv = pgd(net, X[idx], Y[idx])
        net.train()
        loss = F.cross_entropy(net(adv), Y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    robust = (net(pgd(net, X, Y)).argmax(1) == Y).float().mean()
    with torch.no_grad():
        clean = (net(X).argmax(1) == Y).float().mean()
    print(epoch, clean.item(), robust.item())
