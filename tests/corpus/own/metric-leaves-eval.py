# /// case
# category = "mode"
# kind = "training-in-eval-mode"
# severity = "warning"
# names = ["loss"]
# ///
#-
import contextlib

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.3)
        self.out = nn.LazyLinear(3)

    def forward(self, x):
        return self.out(self.drop(self.norm(self.stem(x)).relu()).flatten(1))


@contextlib.contextmanager
def measuring(net):
    net.eval()  #! also
    with torch.no_grad():
        yield net
#+     net.train()


torch.manual_seed(4)
net = Net()
net(torch.randn(2, 2, 10))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
net.train()
for round_ in range(3):
    for _ in range(3):
        x, y = torch.randn(8, 2, 10), torch.randint(0, 3, (8,))
        loss = nn.functional.cross_entropy(net(x), y)  #! here
        opt.zero_grad()
        loss.backward()
        opt.step()
    with measuring(net) as frozen:
        accuracy = (frozen(torch.randn(20, 2, 10)).argmax(1) == 0).float().mean()
        print(round_, accuracy.item())
