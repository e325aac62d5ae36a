# /// case
# category = "gradient"
# kind = "grad-read-when-none"
# severity = "error"
# names = ["norms"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)


def gradient_norm(module):
    return sum(float(p.grad.norm()) for p in module.parameters())  #! here


for step in range(3):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
#+     loss.backward()
    norm = gradient_norm(model)  #! also
    loss.backward()  #-
    opt.step()
    print(step, norm)
