# fmt: off
# ruff: noqa: E701, E702, B007, D - several statements on a line are what this is about
import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)); opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(5, 3)


def loss_of(net, x): y = net(x); return y.pow(2).mean()


for step in range(3):
    opt.zero_grad(); loss = loss_of(net, x); loss.backward(); opt.step()
with torch.no_grad(): y = net(x); z = y * 2
net.eval(); out = net(x); net.train()
try: out.sum().backward(); out.sum().backward()
except RuntimeError: caught = True; print("caught")
