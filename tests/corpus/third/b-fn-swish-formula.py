# /// case
# title = "Memory-efficient SiLU with a wrong derivative"
# category = "custom-function"
# kind = "custom-function-wrong-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["backward", "SiLUFunction", "sig"]
# difficulty = "hard"
# symptom = "Training runs and improves a little; gradients are off by a term. gradcheck fails."
# symptom_check = "not torch.autograd.gradcheck(SiLUFunction.apply, torch.linspace(-2, 2, 5, dtype=torch.double).requires_grad_(), raise_exception=False)"
# cause = "The derivative of x*sigmoid(x) is sig + x*sig*(1-sig); the backward returns sig * (1 - sig) * x only."
# fix = "Return grad * (sig + x * sig * (1 - sig))."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/110815" }, { url = "https://github.com/pytorch/pytorch/issues/4355" }, { url = "https://docs.pytorch.org/docs/stable/notes/extending.html" }]
# ///
"""Squeeze-and-excite CNN with a memory-saving activation."""
import torch
import torch.nn.functional as F
from torch import nn


class SiLUFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):  #! also
        (x,) = ctx.saved_tensors
        sig = torch.sigmoid(x)  #! also
        return grad * x * sig * (1 - sig)  #- here
#+         return grad * (sig + x * sig * (1 - sig))


class MemorySavingSiLU(nn.Module):
    def forward(self, x):
        return SiLUFunction.apply(x)  #! also


class SEBlock(nn.Module):
    def __init__(self, channels, reduced):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.fc1, self.fc2 = nn.Conv2d(channels, reduced, 1), nn.Conv2d(reduced, channels, 1)
        self.act = MemorySavingSiLU()

    def forward(self, x):
        y = self.act(self.conv(x))
        s = F.adaptive_avg_pool2d(y, 1)
        s = torch.sigmoid(self.fc2(self.act(self.fc1(s))))
        return x + s * y


class Net(nn.Module):
    def __init__(self, classes=3, width=12):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.Sequential(SEBlock(width, 4), SEBlock(width, 4))
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


def textures(n):
    y = torch.randint(0, 3, (n,))
    g = torch.arange(8.0)
    phase = torch.rand(n, 1, 1) * 6
    rows = torch.sin(g.view(1, 8, 1) * 2 + phase).expand(n, 8, 8)
    cols = torch.sin(g.view(1, 1, 8) * 2 + phase).expand(n, 8, 8)
    x = torch.where((y == 0).view(-1, 1, 1), rows, torch.where((y == 1).view(-1, 1, 1), cols, rows * cols))
    return (x + 0.2 * torch.randn(n, 8, 8)).unsqueeze(1), y


torch.manual_seed(0)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(22):
    x, y = textures(32)
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("loss", loss.item())
