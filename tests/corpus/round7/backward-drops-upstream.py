# /// case
# title = "The backward of a custom activation returns the local derivative only"
# category = "function"
# kind = "custom-backward-ignores-grad-output"
# kinds_also_ok = ["wrong-custom-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backward", "grad_output", "Mish"]
# symptom = "gradcheck fails"
# symptom_check = "not torch.autograd.gradcheck(Mish.apply, (torch.randn(5, dtype=torch.float64, requires_grad=True),), raise_exception=False)"
# cause = "the chain rule's factor grad_output is missing"
# fix = "multiply"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Mish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def backward(ctx, grad_output):  #! also
        (x,) = ctx.saved_tensors
        t = torch.tanh(F.softplus(x))
        slope = t + x * torch.sigmoid(x) * (1 - t * t)
        return slope  #- here
#+         return grad_output * slope


class MishLayer(nn.Module):
    def forward(self, x):
        return Mish.apply(x)  #! also


torch.manual_seed(95)
model = nn.Sequential(nn.Linear(4, 16), MishLayer(), nn.Linear(16, 16), MishLayer(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x = torch.randn(60, 4)
y = x.square().mean(dim=1, keepdim=True)
for epoch in range(4):
    for xb, yb in zip(x.split(20), y.split(20)):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
