# /// case
# title = "Function multiplies by a constant and passes the gradient on unchanged"
# category = "function"
# kind = "custom-function-wrong-gradient"
# severity = "warning"
# names = ["MulConstant", "backward", "constant"]
# symptom = "the gradient of tensor * 5 is 1"
# symptom_check = "probe.grad[0].item() == 1.0"
# cause = "backward leaves the constant out"
# fix = "grad_output * ctx.constant"
# evidence = [
#     { url = "https://github.com/zergtant/pytorch-handbook/issues/69", title = "2.1.2-pytorch-basics-autograd.ipynb 扩展Autograd的问题" },
# ]
# ///
import torch
import torch.nn as nn


class MulConstant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None  #- here
#+         return grad_output * ctx.constant, None


class EqualLinear(nn.Module):
    """Weights of unit variance that are scaled in each call."""

    def __init__(self, d_in, d_out, gain=2**0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_out, d_in))
        self.bias = nn.Parameter(torch.zeros(d_out))
        self.factor = gain / d_in**0.5

    def forward(self, x):
        return nn.functional.linear(x, MulConstant.apply(self.weight, self.factor), self.bias)  #! also


def mapping(dim, depth):
    layers = []
    for _ in range(depth):
        layers += [EqualLinear(dim, dim), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers)


torch.manual_seed(112)
net = nn.Sequential(mapping(16, 3), EqualLinear(16, 2, gain=1.0))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
for step in range(5):
    z = torch.randn(32, 16)
    loss = nn.functional.mse_loss(net(z), z[:, :2].abs())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

probe = torch.ones(3, requires_grad=True)
MulConstant.apply(probe, 5.0).sum().backward()
print(loss.item(), probe.grad)
