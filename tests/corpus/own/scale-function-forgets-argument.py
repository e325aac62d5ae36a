# /// case
# category = "gradient"
# kind = "custom-function-gradient-count"
# severity = "error"
# names = ["backward", "grad"]
# ///
#-
import torch


class ScaledTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, beta):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        ctx.factor = alpha * beta
        return y * ctx.factor

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y) * ctx.factor, None  #- here
#+         return grad * (1 - y * y) * ctx.factor, None, None


x = torch.randn(5, requires_grad=True)
ScaledTanh.apply(x, 2.0, 0.5).sum().backward()  #! also
print(x.grad)
