import torch
from torch import nn, optim

torch.manual_seed(0)
x = torch.rand(size=(100, 10))
y = x @ torch.rand(10, 1) + 0.05 * torch.randn(100, 1)


class LinearRegression(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.lin = nn.Linear(p, 1)

    def forward(self, x):
        return self.lin(x)


model = LinearRegression(x.size(1))
optimizer = optim.LBFGS(model.parameters(), lr=0.5)
criterion = nn.MSELoss()

for epoch in range(3):

    def closure():
        optimizer.zero_grad()
        pred = model(x)
        loss = criterion(pred, y)
        loss.backward()
        return loss

    print(epoch, optimizer.step(closure).item())
