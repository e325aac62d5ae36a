# /// case
# title = "In-place activation of a pre-activation block overwrites the shortcut"
# category = "in-place"
# kind = "inplace-modifies-shared-input"
# kinds_also_ok = ["inplace-activation-on-residual", "silent-inplace"]
# severity = "warning"
# names = ["act", "inplace", "x"]
# difficulty = "hard"
# symptom = "the residual path carries relu(x) instead of x; no message"
# symptom_check = "(lambda x: not torch.equal(x, (lambda y: (net.blocks[0](y), y)[1])(x.clone())))(torch.randn(2, 8, 6, 6))"
# cause = "nn.ReLU(inplace=True) is the first operation on x and x is used again for the addition"
# fix = "use the out-of-place activation there"
# evidence = [{ url = "https://github.com/rosinality/vq-vae-2-pytorch/issues/60" }, { url = "https://github.com/iduta/iresnet/pull/2" }]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class PreActBlock(nn.Module):
    """activation -> conv -> activation -> conv, added to the unchanged input"""

    def __init__(self, width):
        super().__init__()
        self.act1 = nn.ReLU(inplace=True)  #- here
#+         self.act1 = nn.ReLU()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.act2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        nn.init.zeros_(self.conv2.bias)
        nn.init.normal_(self.conv2.weight, std=1e-2)

    def forward(self, x):
        h = self.conv1(self.act1(x))  #! here
        return x + self.conv2(self.act2(h))  #! here


class PreActNet(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.Sequential(*(PreActBlock(width) for _ in range(depth)))
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        return self.out(self.blocks(self.stem(x)))


torch.manual_seed(0)
net = PreActNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
kernel = torch.ones(1, 1, 3, 3) / 9
for step in range(20):
    sharp = torch.randn(8, 1, 12, 12)
    blurred = F.conv2d(sharp, kernel, padding=1)
    loss = F.mse_loss(net(blurred), sharp)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"{loss.item():.4f}")
