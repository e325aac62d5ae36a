"""BP801 double-softmax."""

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"

PROGRAMS = {
    "a module at the end of a model": HEAD
    + """
model = nn.Sequential(
    nn.Linear(4, 3),
    nn.Softmax(dim=-1),  # <- BP801
)
criterion = nn.CrossEntropyLoss()
for x in torch.randn(3, 8, 4):
    model.zero_grad()
    criterion(model(x), torch.randint(0, 3, (8,))).backward()
""",
    "a module of a class, far from its call": HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
        self.act = nn.Softmax(1)

    def forward(self, x):
        return self.act(self.out(x))  # <- BP801

net = Net()
for x in torch.randn(3, 8, 4):
    net.zero_grad()
    F.cross_entropy(net(x), torch.randint(0, 3, (8,))).backward()
""",
    "an image": HEAD
    + """
model = nn.Conv2d(1, 3, 1)
x = torch.randn(2, 1, 4, 4)
probabilities = F.softmax(model(x), dim=1)  # <- BP801
F.cross_entropy(probabilities, torch.randint(0, 3, (2, 4, 4))).backward()
""",
    "one sample without a batch": HEAD
    + """
model = nn.Linear(4, 3)
probabilities = model(torch.randn(4)).softmax(0)  # <- BP801
F.cross_entropy(probabilities, torch.tensor(1)).backward()
""",
    "tokens in a row": HEAD
    + """
model = nn.Linear(4, 5)
x = torch.randn(2, 6, 4)
probabilities = torch.softmax(model(x), -1)  # <- BP801
F.cross_entropy(probabilities.flatten(0, 1), torch.randint(0, 5, (12,))).backward()
""",
    "a log_softmax before it changes nothing": HEAD
    + """
model = nn.Linear(4, 3)
F.cross_entropy(model(torch.randn(8, 4)).log_softmax(1), torch.randint(0, 3, (8,))).backward()
""",
    "softmax over positions, not classes": HEAD
    + """
model = nn.Linear(4, 3)
gates = torch.softmax(model(torch.randn(2, 6, 4)), 1)
F.cross_entropy(gates.flatten(0, 1), torch.randint(0, 3, (12,))).backward()
""",
    "never differentiated": HEAD
    + """
model = nn.Linear(4, 3)
with torch.no_grad():
    print(F.cross_entropy(model(torch.randn(8, 4)).softmax(1), torch.randint(0, 3, (8,))))
""",
    "in evaluation only, with gradients on": HEAD
    + """
model = nn.Linear(4, 3)
print(F.cross_entropy(model(torch.randn(8, 4)).softmax(1), torch.randint(0, 3, (8,))).item())
""",
    "the probabilities train by another term, too": """
import torch
from torch import nn


class Classifier:
    def __init__(self):
        self.net = nn.Linear(6, 3)
        self.ce = nn.CrossEntropyLoss()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self, x, y):
        p = torch.softmax(self.net(x), dim=-1)
        spread = p.pow(2).sum(-1).mean()
        loss = self.ce(p, y) + 0.1 * spread  # <- BP801
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


torch.manual_seed(0)
classifier = Classifier()
for _ in range(3):
    classifier.step(torch.randn(8, 6), torch.randint(0, 3, (8,)))
""",
    "a softmax that a factory appends": """
import torch
from torch import nn


def stack(widths):
    parts = nn.ModuleList()
    for a, b in zip(widths, widths[1:]):
        parts.append(nn.Linear(a, b))
        if b > 3:
            parts.append(nn.Tanh())
    last = nn.Softmax(dim=1)  # <- BP801
    parts.append(last)
    return nn.Sequential(*parts)


torch.manual_seed(0)
net = stack([5, 8, 3])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = nn.functional.cross_entropy(net(torch.randn(6, 5)), torch.randint(0, 3, (6,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
