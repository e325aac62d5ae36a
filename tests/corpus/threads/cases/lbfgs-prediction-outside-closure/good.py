import torch
from torch import nn, optim


class LinearRegression(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.lin = nn.Linear(p, 1)

    def forward(self, inp):
        return self.lin(inp).tanh()


torch.manual_seed(0)
x, y = torch.rand(100, 10), torch.rand(100, 1)
model = LinearRegression(x.size(1))
optimizer = optim.LBFGS(model.parameters())
criterion = nn.MSELoss()


def closure():
    optimizer.zero_grad()
    pred = model(x)
    loss = criterion(pred, y.view(pred.shape))
    loss.backward()
    return loss


optimizer.step(closure)
