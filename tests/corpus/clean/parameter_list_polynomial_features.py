import torch
from torch import nn

torch.manual_seed(0)


class Poly(nn.Module):
    def __init__(self, degree=3):
        super().__init__()
        self.coef = nn.ParameterList([nn.Parameter(torch.randn(1) * 0.1) for _ in range(degree + 1)])
        self.scales = nn.ParameterDict({"in": nn.Parameter(torch.ones(1)), "out": nn.Parameter(torch.ones(1))})
        self.register_buffer("shift", torch.tensor([0.5]))

    def forward(self, x):
        x = (x - self.shift) * self.scales["in"]
        y = 0
        for k, c in enumerate(self.coef):
            y = y + c * x**k
        return y * self.scales["out"]


x = torch.linspace(-1, 2, 64)
y = x**3 - 2 * x
model = Poly()
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(20):
    loss = ((model(x) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), [round(c.item(), 3) for c in model.coef], model.state_dict().keys())
