"""BP806 single-class-softmax."""

HEAD = "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 1)\n"

PROGRAMS = {
    "a cross entropy over one output": HEAD
    + """
for x in torch.randn(3, 8, 4):
    model.zero_grad()
    nn.functional.cross_entropy(model(x), (x[:, :1] > 0).float()).backward()  # <- BP806
""",
    "a module": """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 1), nn.Softmax(dim=-1))  # <- BP806
for x in torch.randn(3, 8, 4):
    model.zero_grad()
    nn.functional.binary_cross_entropy(model(x), torch.ones(8, 1)).backward()
""",
    "never differentiated": HEAD + "print(torch.softmax(model(torch.randn(8, 4)), dim=1))\n",
    "one sample, several classes": HEAD.replace("(4, 1)", "(4, 3)")
    + "nn.functional.cross_entropy(model(torch.randn(1, 4)), torch.tensor([2])).backward()\n",
    "a module of its own over one score": """
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.norm, self.out = nn.Linear(4, 1), nn.Softmax(dim=-1), nn.Linear(4, 2)

    def forward(self, x):
        weight = self.norm(self.score(x))  # <- BP806
        return self.out((weight * x).sum(1))


torch.manual_seed(0)
net = Pool()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = nn.functional.cross_entropy(net(torch.randn(6, 5, 4)), torch.randint(0, 2, (6,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
