# /// case
# title = "A Function's backward ignores the incoming gradient"
# category = "function"
# kind = "grad-output-ignored"
# kinds_also_ok = ["wrong-custom-backward"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["grad_output", "backward"]
# symptom = "layers below get the same gradient whatever the loss"
# symptom_check = "not torch.autograd.gradcheck(lambda v: (Snake.apply(v, 1.5) * torch.tensor([2.0, -1.0]).double()).sum(), torch.tensor([0.3, 0.8]).double().requires_grad_(), raise_exception=False)"
# cause = "the incoming gradient is not multiplied in"
# fix = "grad_output * local"
# ///
import torch
import torch.nn as nn


class Snake(torch.autograd.Function):
    """x + sin(a x)^2 / a"""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x)
        ctx.a = a
        return x + torch.sin(a * x).square() / a

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        local = 1 + torch.sin(2 * ctx.a * x)  #! also
        return local, None  #- here
#+         return grad_output * local, None


class SnakeNet(nn.Module):
    def __init__(self, width=24, a=1.5):
        super().__init__()
        self.a = a
        self.first, self.second = nn.Linear(1, width), nn.Linear(width, 1)

    def forward(self, t):
        return self.second(Snake.apply(self.first(t), self.a))


torch.manual_seed(61)
net = SnakeNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
t = torch.linspace(-3, 3, 100)[:, None]
y = torch.sin(3 * t)
for epoch in range(30):
    loss = (net(t) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
