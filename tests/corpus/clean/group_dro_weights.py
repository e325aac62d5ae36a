import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
q = torch.ones(3) / 3
eta = 0.1
X = torch.randn(90, 4)
G = torch.randint(0, 3, (90,))
Y = (X[:, 0] + (G == 2) * 0.8 > 0).long()
for epoch in range(3):
    for idx in torch.randperm(90).split(30):
        per = F.cross_entropy(net(X[idx]), Y[idx], reduction="none")
        onehot = F.one_hot(G[idx], 3).float()
        count = onehot.sum(0)
        group = (onehot * per[:, None]).sum(0) / count.clamp(min=1)
        q = q * torch.exp(eta * group.data)
        q = q / q.sum()
        loss = group @ q
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, group.tolist(), q.tolist())
