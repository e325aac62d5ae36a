# /// case
# category = "mode"
# kind = "training-in-eval-mode"
# severity = "warning"
# names = ["eval", "train", "model", "Dropout", "BatchNorm"]
# ///
#-
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.4))
        self.classify = nn.Linear(24, 2)

    def forward(self, x):
        return self.classify(self.features(x))  #! also


def accuracy(net, x, y):
    net.eval()  #! also
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def epoch(net, opt, batches):
#+     net.train()
    for x, y in batches:
        loss = nn.functional.cross_entropy(net(x), y)  #! here
        opt.zero_grad()
        loss.backward()
        opt.step()


torch.manual_seed(0)
x = torch.randn(64, 6)
y = (x[:, 0] > 0).long()
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(3):
    epoch(net, opt, zip(x.split(16), y.split(16)))
    print(accuracy(net, x, y))
