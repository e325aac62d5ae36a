# /// case
# category = "numeric"
# kind = "divergence"
# severity = "warning"
# names = ["opt", "optimizer", "lr"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(100, 3) * torch.tensor([1.0, 8.0, 20.0])
y = X @ torch.tensor([1.0, 2.0, -1.0])
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.05)  #- here
#+ opt = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(25):
    loss = (model(X).squeeze(1) - y).pow(2).mean()  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()  #! also
print(loss.item())
