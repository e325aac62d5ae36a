# /// case
# title = "Derivative of a fitted function enters the loss without create_graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# names = ["grad_x", "loss_z", "grad"]
# symptom = "loss_z has no grad_fn: only the values are fitted"
# symptom_check = "loss_z.grad_fn is None"
# cause = "grad() without create_graph"
# fix = "create_graph=True"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/31984", title = "Question about how to predict the derivation of the output?" },
# ]
# ///
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
    grad_x = grad(output.sum(), x, retain_graph=True)[0]  #- here
#+     grad_x = grad(output.sum(), x, create_graph=True)[0]
    loss_y = mse(output, y)
    loss_z = mse(grad_x, z)  #! also
    loss = loss_y + loss_z  #! also
    loss.backward(inputs=list(model.parameters()))
    optimizer.step()
print("Loss_y = {:.4f} | Loss_z = {:.4f}.".format(loss_y.item(), loss_z.item()))
