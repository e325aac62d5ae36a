import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
features, labels = torch.randn(30, 5), torch.randint(0, 3, (30,))
for epoch in range(3):
    adam.zero_grad()
    loss = nn.functional.cross_entropy(net(features), labels)
    loss.backward()
    adam.step()
    print(epoch, loss.item())
