import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.ops = nn.ModuleList([nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6), nn.Tanh()), nn.Identity()])
        self.alpha = nn.Parameter(1e-3 * torch.randn(3))

    def forward(self, x):
        return sum(w * op(x) for w, op in zip(F.softmax(self.alpha, -1), self.ops))


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.edges = nn.ModuleList(Mixed() for _ in range(2))
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        for edge in self.edges:
            x = edge(x)
        return self.out(x)

    def arch(self):
        return [e.alpha for e in self.edges]

    def weights(self):
        return [p for n, p in self.named_parameters() if not n.endswith("alpha")]


cell = Cell()
w_opt = torch.optim.SGD(cell.weights(), lr=0.05, momentum=0.9)
a_opt = torch.optim.Adam(cell.arch(), lr=3e-3)
for _ in range(8):
    xt, xv = torch.randn(16, 6), torch.randn(16, 6)
    a_opt.zero_grad()
    F.cross_entropy(cell(xv), (xv.sum(1) > 0).long()).backward()
    a_opt.step()
    w_opt.zero_grad()
    loss = F.cross_entropy(cell(xt), (xt.sum(1) > 0).long())
    loss.backward()
    nn.utils.clip_grad_norm_(cell.weights(), 5)
    w_opt.step()
print(loss.item(), [F.softmax(a, -1).tolist() for a in cell.arch()])
