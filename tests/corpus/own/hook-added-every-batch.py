# /// case
# category = "gradient"
# kind = "hook-registered-every-step"
# severity = "warning"
# names = ["layer", "net"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
captured = []
opt = torch.optim.SGD(net.parameters(), lr=0.05)
#+ net[0].register_forward_hook(lambda module, args, out: captured.append(out.detach().mean().item()))
for batch in torch.randn(5, 10, 3):
    net[0].register_forward_hook(lambda module, args, out: captured.append(out.detach().mean().item()))  #- here
    loss = net(batch).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(captured))
