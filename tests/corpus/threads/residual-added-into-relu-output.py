# /// case
# title = "out += residual after ReLU"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["out", "residual"]
# symptom = "RuntimeError: modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "ReLU needs its output for backward"
# fix = "out = out + residual"
# evidence = [
#     { url = "https://github.com/argusswift/YOLOv4-pytorch/issues/247", title = "When I set the activate='relu', I met the RuntimeError. (Solved)" },
#     { url = "https://github.com/pytorch/pytorch/issues/5687", title = "ReLU(inplace=True) seems something wrong internal" },
# ]
# ///
import torch
from torch import nn


class DarkBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv1 = nn.Conv2d(ch, ch, 1)
        self.conv2 = nn.Conv2d(ch, ch, 3, padding=1)

    def forward(self, x):
        residual = x
        out = torch.relu(self.conv1(x))
        out = torch.relu(self.conv2(out))
        out += residual  #- here
#+         out = out + residual
        return out


torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 6, 3), DarkBlock(6), DarkBlock(6), nn.AdaptiveAvgPool2d(1), nn.Flatten())
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(2):
    opt.zero_grad()
    loss = net(torch.randn(2, 3, 10, 10)).pow(2).mean()
    loss.backward()  #! also
    opt.step()
