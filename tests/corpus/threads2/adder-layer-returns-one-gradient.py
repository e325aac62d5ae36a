# /// case
# title = "Backward returns one gradient for two inputs"
# category = "function"
# kind = "custom-function-gradient-count"
# severity = "error"
# names = ["backward", "adder", "grad_W_col", "grad_X_col"]
# symptom = "RuntimeError: incorrect number of gradients (expected 2, got 1)"
# raises = "RuntimeError"
# raises_message = "incorrect number of gradients"
# cause = "forward takes two tensors"
# fix = "return both"
# evidence = [
#     { url = "https://github.com/huawei-noah/AdderNet/issues/21", title = "RuntimeError: function adderBackward returned an incorrect number of gradients (expected 2, got 1)" },
# ]
# ///
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Adder(torch.autograd.Function):
    @staticmethod
    def forward(ctx, W_col, X_col):
        ctx.save_for_backward(W_col, X_col)
        return -(W_col.unsqueeze(2) - X_col.unsqueeze(0)).abs().sum(1)

    @staticmethod
    def backward(ctx, grad_output):
        W_col, X_col = ctx.saved_tensors
        grad_W_col = ((X_col.unsqueeze(0) - W_col.unsqueeze(2)) * grad_output.unsqueeze(1)).sum(2)
        grad_W_col = grad_W_col / grad_W_col.norm().clamp(min=1e-12) * math.sqrt(W_col.numel()) / 5
        grad_X_col = (-(X_col.unsqueeze(0) - W_col.unsqueeze(2)).clamp(-1, 1) * grad_output.unsqueeze(1)).sum(0)
        return grad_W_col  #- here
#+         return grad_W_col, grad_X_col


class Adder2d(nn.Module):
    def __init__(self, i, o, k, stride=1):
        super().__init__()
        self.k, self.stride = k, stride
        self.adder = nn.Parameter(torch.randn(o, i, k, k))

    def forward(self, x):
        side = (x.shape[-1] - self.k) // self.stride + 1
        X_col = F.unfold(x, self.k, stride=self.stride).permute(1, 2, 0).flatten(1)
        out = Adder.apply(self.adder.flatten(1), X_col)  #! also
        return out.view(len(self.adder), side, side, len(x)).permute(3, 0, 1, 2)


torch.manual_seed(113)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), Adder2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
for epoch in range(3):
    images, labels = torch.rand(6, 1, 8, 8), torch.randint(0, 3, (6,))
    loss = F.cross_entropy(net(images), labels)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
