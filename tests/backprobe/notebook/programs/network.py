# %%
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 3)
        self.fc1 = nn.Linear(2 * 3 * 3, 4)
        self.fc2 = nn.Linear(4, 2)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc2(torch.relu(self.fc1(x)))


torch.manual_seed(0)
net = Net()
print(net)
# %%
params = list(net.parameters())
print(len(params))
params[0].size()
# %%
out = net(torch.ones(1, 1, 8, 8))
net.zero_grad()
out.backward(torch.ones(1, 2))
net.conv1.bias.grad is None, net.fc2.bias.grad
# %%
target = torch.zeros(1, 3)
loss = nn.MSELoss()(net(torch.ones(1, 1, 8, 8)), target)
