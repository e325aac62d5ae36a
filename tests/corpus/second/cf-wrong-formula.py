# /// case
# title = "The hand-written derivative is wrong"
# category = "custom-function"
# kind = "custom-function-wrong-gradient"
# severity = "warning"
# names = ["Swishy"]
# difficulty = "hard"
# symptom = "silent: gradcheck fails"
# symptom_check = "not torch.allclose(torch.autograd.functional.jacobian(lambda t: Swishy.apply(t).sum(), probe), torch.autograd.functional.jacobian(lambda t: torch.nn.functional.silu(t).sum(), probe), atol=1e-4)"
# cause = "missing term of the product rule"
# fix = "sig * (1 + x * (1 - sig))"
# evidence = [
#     { url = "https://github.com/KeKsBoTer/torch-dwt/issues/2" },
#     { url = "https://github.com/pytorch/pytorch/issues/4355" },
#     { url = "https://github.com/nerfstudio-project/gsplat/issues/465" },
# ]
# ///
import torch
from torch import nn


class Swishy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        sig = torch.sigmoid(x)
        return grad_out * sig * (1 - sig)  #- here
#+         return grad_out * sig * (1 + x * (1 - sig))


torch.manual_seed(10)
probe = torch.randn(6, dtype=torch.float64)
fc = nn.Linear(4, 4)
opt = torch.optim.SGD(fc.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(12, 4)
    loss = (Swishy.apply(fc(x)) - torch.relu(x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
