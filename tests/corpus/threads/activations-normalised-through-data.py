# /// case
# title = "Activations are rescaled through .data after the layer that saved them"
# category = "in-place"
# kind = "saved-changed-unseen"
# kinds_also_ok = ["silent-inplace-through-data"]
# severity = "warning"
# names = ["data", "h"]
# symptom = "the gradient is taken at values that the forward did not use"
# symptom_check = "not torch.allclose(fc2.weight.grad, fc2_right, atol=1e-6)"
# cause = ".data writes are invisible to the version counter"
# fix = "rescale out of place"
# evidence = [
#     { url = "https://github.com/chr5tphr/zennit/pull/61", title = "Fix mod_params breaking gradients from torch 1.10" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(1)
fc1, fc2 = nn.Linear(6, 10), nn.Linear(10, 1)
opt = torch.optim.SGD([*fc1.parameters(), *fc2.parameters()], lr=1e-9)


def forward(x):
    h = torch.tanh(fc1(x))
    out = fc2(h)  #! also
    h.data.mul_(0.5)  #- here
#+     h = h.detach() * 0.5
    return out, h


kept = []
for _ in range(4):
    x, y = torch.randn(32, 6), torch.randn(32, 1)
    out, h = forward(x)
    kept.append(h.abs().mean().item())
    loss = nn.functional.mse_loss(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
right = nn.functional.mse_loss(fc2(torch.tanh(fc1(x))), y)
(fc2_right,) = torch.autograd.grad(right, fc2.weight)
print(kept)
