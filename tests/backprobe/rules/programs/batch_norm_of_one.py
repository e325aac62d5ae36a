"""BP668 batch-norm-of-one."""

PROGRAMS = {
    "the last batch of a loader": """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(9, 4), torch.randint(0, 2, (9,)))
loader = DataLoader(data, batch_size=4)  # <- BP668
net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
""",
    "a pooled image, one at a time": """
import torch
from torch import nn

class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x):
        return self.norm(self.pool(x))  # <- BP668

model = Pyramid()
def step(image):
    return model(image).sum()
for image in torch.randn(2, 1, 3, 4, 4):
    step(image).backward()
""",
    "one sample in evaluation": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    print(net(torch.randn(1, 4)))
""",
}
