"""BP608 grad-mode-left-off."""

PROGRAMS = {
    "switched off in a helper": """
import torch
from torch import nn
torch.manual_seed(0)

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def evaluate(x):
    torch.set_grad_enabled(False)  # <- BP608
    return net(x).mean().item()
for x in torch.randn(3, 8, 3):
    loss = net(x).pow(2).mean()
    if loss.requires_grad:
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(evaluate(x))
torch.set_grad_enabled(True)
""",
}
