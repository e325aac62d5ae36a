# /// case
# title = "The surrogate derivative of a spike function has the wrong sign"
# category = "experiment"
# kind = "custom-function-wrong-gradient"
# severity = "warning"
# names = ["backward", "Spike"]
# symptom = "raising the input current lowers the firing by its gradient"
# symptom_check = "float(slope) < 0"
# cause = "backward divides by the negated square"
# fix = "drop the sign"
# evidence = [
#     { url = "https://github.com/KeKsBoTer/torch-dwt/issues/2", title = "GradcheckError, may be wrong way to backpropagation." },
#     { url = "https://github.com/pytorch/pytorch/issues/76185", title = "Ensure custom Function are correct in double backward setting" },
# ]
# ///
import torch
from torch import nn


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx, grad):
        (v,) = ctx.saved_tensors
        return -grad / (1 + 10 * v.abs()) ** 2  #- here
#+         return grad / (1 + 10 * v.abs()) ** 2


def simulate(currents, steps=8):
    v = torch.zeros_like(currents)
    count = 0
    for _ in range(steps):
        v = 0.8 * v + currents
        s = Spike.apply(v - 1.0)  #! also
        v = v - s.detach()
        count = count + s
    return count


torch.manual_seed(3)
layer, out = nn.Linear(5, 12), nn.Linear(12, 2)
opt = torch.optim.Adam([*layer.parameters(), *out.parameters()], lr=1e-2)
for _ in range(6):
    loss = nn.functional.cross_entropy(out(simulate(layer(torch.rand(16, 5)))), torch.randint(0, 2, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
probe = torch.tensor([0.3], requires_grad=True)
(slope,) = torch.autograd.grad(simulate(probe).sum(), probe)
