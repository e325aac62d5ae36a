# /// case
# title = "A Function whose backward forgets grad_output"
# category = "experiment"
# kind = "custom-function-wrong-gradient"
# severity = "warning"
# names = ["backward", "SigmoidFn"]
# symptom = "the gradient does not agree with finite differences"
# symptom_check = "not torch.allclose(given, right, rtol=1e-4)"
# cause = "backward returns the local derivative without grad_output"
# fix = "multiply"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/4355", title = "gradcheck fails with cryptic error" },
# ]
# ///
import torch
from torch import nn


class ISRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        inv = torch.rsqrt(1 + x * x)
        ctx.save_for_backward(inv)
        return x * inv

    @staticmethod
    def backward(ctx, grad_out):
        (inv,) = ctx.saved_tensors
        return inv**3  #- here
#+         return grad_out * inv**3


torch.manual_seed(4)
lin1, lin2 = nn.Linear(5, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*lin1.parameters(), *lin2.parameters()], lr=1e-2)
for _ in range(10):
    x = torch.randn(32, 5)
    loss = (lin2(ISRU.apply(lin1(x))) - x.norm(dim=1, keepdim=True)).pow(2).mean()  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
h = torch.randn(6, requires_grad=True)
(given,) = torch.autograd.grad((3 * ISRU.apply(h)).sum(), h)
(right,) = torch.autograd.grad((3 * h * torch.rsqrt(1 + h * h)).sum(), h)
print(given, right)
