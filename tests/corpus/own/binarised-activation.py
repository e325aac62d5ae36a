# /// case
# category = "gradient"
# kind = "zero-gradient-op"
# severity = "warning"
# names = ["code", "encoder"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(10, 6), nn.Linear(6, 10)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
for _ in range(4):
    x = torch.rand(24, 10)
    soft = torch.sigmoid(encoder(x))
    code = torch.round(soft)  #- here
#+     code = soft + (torch.round(soft) - soft).detach()
    loss = nn.functional.mse_loss(decoder(code), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item(), encoder.weight.grad.abs().sum().item())
