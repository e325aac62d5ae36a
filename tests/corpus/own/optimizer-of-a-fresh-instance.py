# /// case
# category = "wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["net"]
# ///
#-
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.hidden = nn.Linear(3, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


def make_optimizer(name, lr, params):
    return {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[name](params, lr=lr)


torch.manual_seed(0)
net = Net()
opt = make_optimizer("adam", 1e-2, Net().parameters())  #- here
#+ opt = make_optimizer("adam", 1e-2, net.parameters())
for _ in range(5):
    x = torch.randn(10, 3)
    loss = (net(x) - x[:, :1] * x[:, 1:2]).pow(2).mean()
    net.zero_grad()
    loss.backward()
    opt.step()  #! also
    print(loss.item())
