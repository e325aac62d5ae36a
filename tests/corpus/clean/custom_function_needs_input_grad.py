import torch
from torch import nn
from torch.autograd import Function, gradcheck

torch.manual_seed(0)


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class Linear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(o, i).uniform_(-0.3, 0.3))
        self.bias = nn.Parameter(torch.zeros(o))

    def forward(self, x):
        return LinearFunction.apply(x, self.weight, self.bias)


net = nn.Sequential(Linear(6, 16), nn.Tanh(), Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(40, 6)
t = x.sum(1, keepdim=True)
for _ in range(6):
    opt.zero_grad()
    loss = (net(x) - t).pow(2).mean()
    loss.backward()
    opt.step()
print(loss.item())
a = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
b = torch.randn(2, 4, dtype=torch.double, requires_grad=True)
print(gradcheck(LinearFunction.apply, (a, b, None)))
