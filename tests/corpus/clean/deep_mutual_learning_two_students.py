import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
nets = [nn.Sequential(nn.Linear(6, h), nn.ReLU(), nn.Linear(h, 3)) for h in (16, 24)]
optims = [torch.optim.SGD(n.parameters(), lr=0.05, momentum=0.9) for n in nets]
X, Y = torch.randn(64, 6), torch.randint(0, 3, (64,))
for epoch in range(4):
    for idx in torch.randperm(64).split(16):
        outs = [n(X[idx]) for n in nets]
        for i, (net, opt) in enumerate(zip(nets, optims)):
            ce = F.cross_entropy(outs[i], Y[idx])
            kl = 0.0
            for j in range(len(nets)):
                if j != i:
                    kl += F.kl_div(F.log_softmax(outs[i], 1), F.softmax(outs[j].detach(), 1), reduction="batchmean")
            loss = ce + kl / (len(nets) - 1)
            opt.zero_grad()
            loss.backward()
            opt.step()
    accs = []
    with torch.no_grad():
        for n in nets:
            accs.append((n(X).argmax(1) == Y).float().mean().item())
    print(epoch, accs)
