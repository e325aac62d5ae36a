# /// case
# title = "autograd.grad of a vector without grad_outputs"
# category = "higher-order"
# kind = "backward-on-nonscalar"
# severity = "error"
# names = ["potential"]
# difficulty = "easy"
# symptom = "RuntimeError: grad can be implicitly created only for scalar outputs"
# raises = "RuntimeError"
# raises_message = "grad can be implicitly created only for scalar outputs"
# cause = "a vector-Jacobian product needs its vector"
# fix = "grad_outputs=torch.ones_like(potential)"
# evidence = [
#     { url = "https://github.com/Animadversio/GAN-Geometry/issues/4" },
#     { url = "https://github.com/cybertronai/autograd-hacks/issues/8" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(1)
energy = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 1))
pos = torch.randn(7, 3, requires_grad=True)
potential = energy(pos)
force = -torch.autograd.grad(potential, pos, create_graph=True)[0]  #- here
#+ force = -torch.autograd.grad(potential, pos, torch.ones_like(potential), create_graph=True)[0]
match = (force - torch.zeros_like(force)).pow(2).mean()
match.backward(inputs=list(energy.parameters())[:-1])
print(match.item())
