import contextlib

import torch
from torch import nn

torch.manual_seed(10)


@contextlib.contextmanager
def evaluating(model):
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was)


net = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(12):
    x, y = torch.randn(16, 5), torch.randint(0, 2, (16,))
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    if step % 4 == 3:
        with evaluating(net):
            print(step, nn.functional.cross_entropy(net(x), y).item())
