"""BP244 custom-backward-constant."""

PROGRAMS = {
    "function ignores gradient": """
import torch
from torch import nn
torch.manual_seed(0)
class Hinge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, margin):
        ctx.save_for_backward(margin)
        return (1 - margin).clamp(min=0)
    @staticmethod
    def backward(ctx, g):
        margin, = ctx.saved_tensors
        return -(margin < 1).float()  # <- BP244
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(4, 8, 4):
    y = x[:, :1].sign()
    loss = Hinge.apply(net(x) * y).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "gradient reversal as module": """
import torch
from torch import nn
torch.manual_seed(0)
class Reverse(nn.Module):
    def __init__(self, a): super().__init__(); self.a = a
    def forward(self, x): return x * 1.0
    def backward(self, grad):  # <- BP244
        return -self.a * grad
enc, cls, dom = nn.Linear(4, 8), nn.Linear(8, 2), nn.Sequential(Reverse(0.1), nn.Linear(8, 2))
opt = torch.optim.SGD([*enc.parameters(), *cls.parameters(), *dom.parameters()], 0.1)
for x in torch.randn(4, 8, 4):
    h = enc(x).relu()
    y = torch.randint(0, 2, (8,))
    loss = nn.functional.cross_entropy(cls(h), y) + nn.functional.cross_entropy(dom(h), y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good straight through": """
import torch
from torch import nn
torch.manual_seed(0)
class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.sign()
    @staticmethod
    def backward(ctx, g): return g
net, out = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *out.parameters()], 0.1)
for x in torch.randn(4, 8, 4):
    loss = (out(Sign.apply(net(x))) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
