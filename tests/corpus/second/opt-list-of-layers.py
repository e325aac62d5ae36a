# /// case
# title = "Hidden layers in a plain Python list are not registered"
# category = "optimizer-wiring"
# kind = "unregistered-parameters"
# severity = "warning"
# names = ["self.blocks"]
# difficulty = "medium"
# symptom = "silent: list layers are not in parameters(), only the output layer trains"
# symptom_check = "torch.equal(first, mlp.blocks[0].weight)"
# cause = "Module registers only Module/Parameter attributes (and ModuleList/Dict)"
# fix = "nn.ModuleList"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/59925" },
#     { url = "https://github.com/pytorch/pytorch/issues/38639" },
#     { url = "https://github.com/pytorch/pytorch/issues/715" },
#     { url = "https://github.com/asyml/texar-pytorch/issues/72" },
# ]
# ///
import torch
from torch import nn


class DeepRegressor(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.blocks = [nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:])]  #- here
#+         self.blocks = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        self.out = nn.Linear(sizes[-1], 1)

    def forward(self, x):
        for block in self.blocks:
            x = torch.nn.functional.mish(block(x))
        return self.out(x)


torch.manual_seed(9)
mlp = DeepRegressor([5, 20, 20])
first = mlp.blocks[0].weight.detach().clone()
opt = torch.optim.Adam(mlp.parameters(), lr=3e-3)  #! also
x = torch.randn(64, 5)
y = x.prod(1, keepdim=True)
for _ in range(10):
    opt.zero_grad()
    loss = nn.functional.mse_loss(mlp(x), y)
    loss.backward()
    opt.step()
print(loss.item())
