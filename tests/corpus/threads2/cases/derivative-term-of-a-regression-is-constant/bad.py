import torch
from torch import nn
from torch.autograd import grad


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1 = nn.Linear(3, 30)
        self.lin2 = nn.Linear(30, 1)

    def forward(self, p):
        return self.lin2(torch.tanh(self.lin1(p)))


torch.manual_seed(0)
x = torch.randn(100, 3)
y = (5 * torch.sin(x) + 3 * torch.cos(x)).sum(dim=-1, keepdim=True)
z = 5 * torch.cos(x) - 3 * torch.sin(x)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
mse = nn.MSELoss()
x.requires_grad_(True)

for epoch in range(20):
    model.train()
    optimizer.zero_grad()
    output = model(x)
    grad_x = grad(output.sum(), x, retain_graph=True)[0]
    loss_y = mse(output, y)
    loss_z = mse(grad_x, z)
    loss = loss_y + loss_z
    loss.backward(inputs=list(model.parameters()))
    optimizer.step()
print("Loss_y = {:.4f} | Loss_z = {:.4f}.".format(loss_y.item(), loss_z.item()))
