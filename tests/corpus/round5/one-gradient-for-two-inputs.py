# /// case
# title = "A Function returns one gradient for two inputs"
# category = "function"
# kind = "backward-arity"
# severity = "error"
# names = ["Adder", "backward"]
# symptom = "backward raises"
# raises = "RuntimeError"
# raises_message = "incorrect number of gradients"
# cause = "backward must return as many gradients as forward has inputs"
# fix = "return both"
# evidence = [
#     { url = "https://github.com/huawei-noah/AdderNet/issues/21", title = "RuntimeError: function adderBackward returned an incorrect number of gradients (expected 2, got 1)" },
# ]
# ///
import torch
import torch.nn as nn
from torch.autograd import Function


class Adder(Function):
    """Negative L1 distance of each patch and each filter."""

    @staticmethod
    def forward(ctx, W_col, X_col):
        ctx.save_for_backward(W_col, X_col)
        return -(W_col.unsqueeze(2) - X_col.unsqueeze(0)).abs().sum(1)

    @staticmethod
    def backward(ctx, grad_output):
        W_col, X_col = ctx.saved_tensors
        grad_W_col = ((X_col.unsqueeze(0) - W_col.unsqueeze(2)) * grad_output.unsqueeze(1)).sum(2)
        grad_W_col = grad_W_col / grad_W_col.norm(p=2).clamp(min=1e-12) * (W_col.size(1) * W_col.size(0)) ** 0.5 / 5
        return grad_W_col  #- here
#+         grad_X_col = (-(X_col.unsqueeze(0) - W_col.unsqueeze(2)).clamp(-1, 1) * grad_output.unsqueeze(1)).sum(0)
#+         return grad_W_col, grad_X_col


class adder2d(nn.Module):
    def __init__(self, i, o, k=3):
        super().__init__()
        self.k = k
        self.adder = nn.Parameter(torch.randn(o, i * k * k))
        self.bn = nn.BatchNorm2d(o)

    def forward(self, x):
        n, _, h, w = x.shape
        cols = nn.functional.unfold(x, self.k, padding=1).permute(1, 2, 0).reshape(self.adder.shape[1], -1)
        out = Adder.apply(self.adder, cols)  #! also
        return self.bn(out.view(-1, h, w, n).permute(3, 0, 1, 2))


torch.manual_seed(49)
net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), adder2d(4, 6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for it in range(3):
    images, labels = torch.randn(6, 1, 6, 6), torch.randint(0, 3, (6,))
    loss = nn.functional.cross_entropy(net(images), labels)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
