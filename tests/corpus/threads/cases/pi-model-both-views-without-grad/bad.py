import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
opt = optim.Adam(net.parameters(), lr=1e-3)
labelled = torch.randn(32, 16)
targets = torch.randint(0, 4, (32,))
unlabelled = torch.randn(96, 16)

net.train()
for step in range(15):
    opt.zero_grad()
    supervised = F.cross_entropy(net(labelled), targets)
    with torch.no_grad():
        target = net(unlabelled + 0.1 * torch.randn_like(unlabelled)).softmax(1)
        student = net(unlabelled + 0.1 * torch.randn_like(unlabelled)).softmax(1)
        consistency = F.mse_loss(student, target)
    weight = min(1.0, step / 10)
    loss = supervised + weight * consistency
    loss.backward()
    opt.step()
print(supervised.item(), consistency.item())
