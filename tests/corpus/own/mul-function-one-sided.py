# /// case
# category = "gradient"
# kind = "custom-function-missing-gradient"
# severity = "warning"
# names = ["scale"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * scale, None  #- here
#+         return g * scale, (g * x).sum(0)


class GatedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return Gate.apply(self.lin(x), self.scale)


net = GatedNet()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()
print(net.scale.grad)
