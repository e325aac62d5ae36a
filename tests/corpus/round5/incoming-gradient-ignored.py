# /// case
# title = "A Function's backward does not use grad_output"
# category = "function"
# kind = "ignores-grad-output"
# kinds_also_ok = ["wrong-custom-backward"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["ProdPool", "grad_output", "backward"]
# symptom = "sign and size of what follows are lost"
# symptom_check = "torch.allclose(minus, plus)"
# cause = "the local derivative alone is returned"
# fix = "multiply by grad_output"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/995", title = "backward of -torch.prod(x) missing negative sign" },
# ]
# ///
import torch
import torch.nn as nn


class ProdPool(torch.autograd.Function):
    """Product over the last dimension."""

    @staticmethod
    def forward(ctx, x):
        out = x.prod(dim=-1)
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, out = ctx.saved_tensors
        return out.unsqueeze(-1) / x  #- here
#+         return grad_output.unsqueeze(-1) * out.unsqueeze(-1) / x


class NoisyOr(nn.Module):
    """P(effect) = 1 - prod(1 - p_i)"""

    def __init__(self, causes):
        super().__init__()
        self.score = nn.Linear(causes, causes)

    def forward(self, x):
        absent = 1 - 0.9 * torch.sigmoid(self.score(x))
        return 1 - ProdPool.apply(absent)  #! also


torch.manual_seed(57)
model = NoisyOr(5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randint(0, 2, (80, 5)).float()
y = (x[:, 0] + x[:, 3] > 0).float()
for epoch in range(10):
    p = model(x).clamp(1e-4, 1 - 1e-4)
    loss = nn.functional.binary_cross_entropy(p, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
v = torch.rand(2, 3, requires_grad=True)
plus = torch.autograd.grad(ProdPool.apply(v).sum(), v)[0]
minus = torch.autograd.grad(-2 * ProdPool.apply(v).sum(), v)[0]
print(plus, minus)
