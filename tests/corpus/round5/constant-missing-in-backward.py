# /// case
# title = "A Function's backward forgets its constant"
# category = "function"
# kind = "wrong-custom-backward"
# severity = "warning"
# severity_by_writer = "error"
# names = ["MulConstant", "backward", "constant"]
# symptom = "the gradient lacks the factor of forward"
# symptom_check = "not torch.autograd.gradcheck(lambda t: MulConstant.apply(t, 3.0), (torch.randn(4, dtype=torch.double, requires_grad=True),), raise_exception=False)"
# cause = "grad_output is returned as it comes"
# fix = "multiply by the constant"
# evidence = [
#     { url = "https://github.com/zergtant/pytorch-handbook/issues/69", title = "2.1.2-pytorch-basics-autograd.ipynb 扩展Autograd的问题" },
#     { url = "https://github.com/pytorch/pytorch/pull/132601", title = "Fix a typo in the example code." },
# ]
# ///
import torch
from torch import nn
from torch.autograd import Function


class MulConstant(Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None  #- here
#+         return grad_output * ctx.constant, None


class EqualLinear(nn.Module):
    """Weights of unit variance, scaled while running."""

    def __init__(self, i, o, gain=3.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i))
        self.bias = nn.Parameter(torch.zeros(o))
        self.scale = gain / i ** 0.5

    def forward(self, x):
        return nn.functional.linear(x, MulConstant.apply(self.weight, self.scale), self.bias)  #! also


torch.manual_seed(34)
mapping = nn.Sequential(EqualLinear(8, 32), nn.LeakyReLU(0.2), EqualLinear(32, 2, gain=0.1))
optimizer = torch.optim.SGD(mapping.parameters(), lr=0.05)
z = torch.randn(64, 8)
w = torch.stack([z[:, 0], z[:, 1] * z[:, 2]], 1)
for epoch in range(10):
    loss = nn.functional.mse_loss(mapping(z), w)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
