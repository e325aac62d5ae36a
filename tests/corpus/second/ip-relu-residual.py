# /// case
# title = "Residual added in place to the output of an (in-place) ReLU"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["out"]
# difficulty = "medium"
# symptom = "RuntimeError: ... modified by an inplace operation ... output 0 of ReluBackward0"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "relu's backward needs its output; += overwrites it"
# fix = "out = self.act(out) + skip"
# evidence = [
#     { url = "https://github.com/pytorch/vision/issues/807" },
#     { url = "https://github.com/pytorch/pytorch/issues/5687" },
#     { url = "https://github.com/open-mmlab/mmdetection/pull/9450" },
#     { url = "https://github.com/osmr/imgclsmob/issues/13" },
# ]
# ///
import torch
from torch import nn


class PreActBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(ch)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        skip = x
        out = self.bn(self.conv(x))
        out = self.act(out)
        out += skip  #- here
#+         out = out + skip
        return out


torch.manual_seed(0)
tower = nn.Sequential(nn.Conv2d(3, 6, 1), PreActBlock(6), PreActBlock(6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 2))
opt = torch.optim.SGD(tower.parameters(), lr=0.01)
for _ in range(2):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(tower(torch.randn(4, 3, 8, 8)), torch.tensor([0, 1, 1, 0]))
    loss.backward()  #! also
    opt.step()
print(loss.item())
