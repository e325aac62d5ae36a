# /// case
# title = 'A "logging" hook returns a value: it replaces the gradient'
# category = "hooks"
# kind = "hook-modifies-gradient"
# severity = "warning"
# names = ["h", "log_norm"]
# difficulty = "hard"
# symptom = "silent: gradients are clamped by the logger"
# symptom_check = "changed"
# cause = "a tensor hook's return value replaces the gradient"
# fix = "return None"
# evidence = [
#     { url = "https://github.com/utkuozbulak/pytorch-cnn-visualizations/issues/18" },
#     { url = "https://github.com/TransformerLensOrg/TransformerLens/issues/1160" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(9)
net1, net2 = nn.Linear(6, 10), nn.Linear(10, 1)
opt = torch.optim.SGD([*net1.parameters(), *net2.parameters()], lr=0.01)
seen = []


def log_norm(grad):
    shown = grad.clamp(-1e-3, 1e-3)
    seen.append(shown.norm().item())
    return shown  #- here


for it in range(4):
    x = torch.randn(15, 6)
    h = torch.relu(net1(x))
    loss = (net2(h) - 10 * x[:, :1]).pow(2).mean()
    true = torch.autograd.grad(loss, net1.weight, retain_graph=True)[0]
    h.register_hook(log_norm)  #! also
    opt.zero_grad()
    loss.backward()
    changed = not torch.allclose(true, net1.weight.grad)
    opt.step()
print(seen, changed)
