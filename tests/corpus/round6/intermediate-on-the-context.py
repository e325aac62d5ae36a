# /// case
# title = "The double backward of a Function misses a term"
# category = "function"
# kind = "double-backward-wrong"
# kinds_also_ok = ["ctx-attribute", "wrong-custom-backward"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["ctx.square"]
# symptom = "the gradient of the force loss misses the dependence of the square upon the layer's weights"
# symptom_check = "not torch.autograd.gradgradcheck(Cubed.apply, torch.tensor([0.3, -0.8]).double().requires_grad_(), raise_exception=False)"
# cause = "an intermediate value on the context is a constant in backward"
# fix = "save the input and compute from it"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/58509", title = "custom Function intermediary results are dangerous for double backward" },
#     { url = "https://github.com/pytorch/pytorch/issues/104040", title = "Improved error checking for custom Function when saving intermediates" },
# ]
# ///
import torch
import torch.nn as nn


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.square = square  #- here
#+         ctx.save_for_backward(x)
        return square * x

    @staticmethod
    def backward(ctx, grad):
        return 3 * ctx.square * grad  #- also
#+         (x,) = ctx.saved_tensors
#+         return 3 * x * x * grad


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(2, 16), nn.Linear(16, 1, bias=False)

    def forward(self, r):
        return self.outer(Cubed.apply(self.inner(r)))


torch.manual_seed(62)
net = Potential()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
r = torch.randn(80, 2)
force = -2 * r
for step in range(20):
    pos = r.clone().requires_grad_()
    energy = net(pos).sum()
    (grad,) = torch.autograd.grad(energy, pos, create_graph=True)
    loss = (-grad - force).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
