# /// case
# title = "Prior added in place to a view of a bias"
# category = "leaf"
# kind = "inplace-on-leaf-view"
# kinds_also_ok = ["inplace-on-leaf"]
# severity = "error"
# names = ["b", "bias", "view"]
# symptom = "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation"
# raises = "RuntimeError"
# raises_message = "a view of a leaf Variable that requires grad is being used in an in-place operation"
# cause = "b is a view of the parameter"
# fix = "write under no_grad or through .data before training"
# evidence = [
#     { url = "https://github.com/xhwNobody/yolov5_prune_sfp/issues/17", title = "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation." },
#     { url = "https://github.com/Atcold/NYU-DLSP20/issues/765", title = "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation." },
# ]
# ///
import math

import torch
import torch.nn as nn


class Detect(nn.Module):
    def __init__(self, nc=4, na=3, ch=(8, 16)):
        super().__init__()
        self.nc, self.no, self.na = nc, nc + 5, na
        self.m = nn.ModuleList(nn.Conv2d(c, self.no * na, 1) for c in ch)
        self.stride = torch.tensor([8.0, 16.0])

    def forward(self, features):
        return [conv(f) for conv, f in zip(self.m, features)]


class Model(nn.Module):
    def __init__(self, nc=4):
        super().__init__()
        self.low = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU())
        self.high = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.SiLU())
        self.head = Detect(nc)
        self._initialize_biases()

    def forward(self, x):
        low = self.low(x)
        return self.head([low, self.high(low)])

    def _initialize_biases(self, cf=None):
        for conv, s in zip(self.head.m, self.head.stride):
            b = conv.bias.view(self.head.na, -1)  #- also
#+             b = conv.bias.data.view(self.head.na, -1)
            b[:, 4] += math.log(8 / (640 / s) ** 2)  #! here
            b[:, 5:] += math.log(0.6 / (self.head.nc - 0.99)) if cf is None else torch.log(cf / cf.sum())
            conv.bias = nn.Parameter(b.reshape(-1).detach().clone())


torch.manual_seed(31)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for out in [model(torch.rand(2, 3, 16, 16)) for _ in range(2)]:
    loss = sum(o.pow(2).mean() for o in out)
    optimizer.zero_grad()
    loss.backward()
print(loss.item())
