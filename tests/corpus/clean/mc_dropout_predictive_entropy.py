import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
X = torch.randn(90, 4)
Y = X[:, :3].argmax(1)
for epoch in range(4):
    net.train()
    for i in torch.randperm(90).split(30):
        opt.zero_grad()
        F.cross_entropy(net(X[i]), Y[i]).backward()
        opt.step()


def predict(x, passes=10):
    net.eval()
    for m in net.modules():
        if m.__class__.__name__.startswith("Dropout"):
            m.train()
    with torch.no_grad():
        p = torch.stack([net(x).softmax(-1) for _ in range(passes)])
    mean = p.mean(0)
    total = -(mean * mean.clamp_min(1e-12).log()).sum(-1)
    aleatoric = -(p * p.clamp_min(1e-12).log()).sum(-1).mean(0)
    return mean, total - aleatoric


mean, epistemic = predict(torch.randn(10, 4) * 3)
print(mean.argmax(-1), epistemic)
