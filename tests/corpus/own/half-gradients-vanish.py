# /// case
# category = "numeric"
# kind = "half-gradient-underflow"
# severity = "warning"
# names = ["model", "loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(32, 8).half()  #- here
#+ model = nn.Linear(32, 8).bfloat16()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(4, 64, 32).half():  #-
#+ for x in torch.randn(4, 64, 32).bfloat16():
    out = model(x)
    loss = (out.float() * 1e-6).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    print(float(model.weight.grad.float().abs().sum()))
