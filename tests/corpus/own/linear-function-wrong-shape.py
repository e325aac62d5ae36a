# /// case
# category = "gradient"
# kind = "custom-function-gradient-shape"
# severity = "error"
# names = ["grad_weight"]
# ///
#-
import torch
from torch.autograd import Function

torch.manual_seed(0)


class Affine(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_out):
        x, weight = ctx.saved_tensors
        grad_x = grad_out @ weight
        grad_weight = x.t() @ grad_out  #-
#+         grad_weight = grad_out.t() @ x
        return grad_x, grad_weight  #! here


weight = torch.randn(4, 3, requires_grad=True)
Affine.apply(torch.randn(6, 3, requires_grad=True), weight).sum().backward()  #! also
print(weight.grad.shape)
