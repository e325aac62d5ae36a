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
}
