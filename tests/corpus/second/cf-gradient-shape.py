# /// case
# title = "backward returns a gradient of the wrong shape for a broadcast input"
# category = "custom-function"
# kind = "custom-function-gradient-shape"
# severity = "error"
# names = ["AddBias"]
# difficulty = "medium"
# symptom = "RuntimeError: Function AddBiasBackward returned an invalid gradient at index 1 - got [9, 4] but expected shape compatible with [4]"
# raises = "RuntimeError"
# raises_message = "returned an invalid gradient at index 1"
# cause = "the broadcast dimension was not summed"
# fix = "grad.sum(0)"
# evidence = [
#     { url = "https://github.com/ngxbac/GAIN/issues/2" },
#     { url = "https://github.com/csrhddlam/pytorch-checkpoint/issues/2" },
# ]
# ///
import torch


class AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        ctx.n = x.shape[0]
        return x + b * ctx.n

    @staticmethod
    def backward(ctx, grad):
        return grad, (grad * ctx.n).reshape(ctx.n, -1, 1)  #- here
#+         return grad, (grad * ctx.n).sum(0)


x = torch.ones(9, 4, requires_grad=True)
b = torch.zeros(4, requires_grad=True)
AddBias.apply(x, b).square().mean().backward()  #! also
print(b.grad)
