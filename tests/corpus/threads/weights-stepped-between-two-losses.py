# /// case
# title = "The discriminator steps between the generator's forward and its backward"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# kinds_also_ok = ["step-before-backward"]
# severity = "error"
# names = ["step", "opt_d"]
# symptom = "RuntimeError: modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "opt_d.step() changes weights that g_loss's graph saved"
# fix = "step after both backward calls"
# evidence = [
#     { url = "https://github.com/thomasjpfan/pytorch_refinenet/issues/2", title = "one of the variables needed for gradient computation has been modified by an inplace operation" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(9)
G = nn.Linear(4, 6)
D = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
opt_g = torch.optim.SGD(G.parameters(), lr=0.01)
opt_d = torch.optim.SGD(D.parameters(), lr=0.01)


def iteration(real, z):
    fake = G(z)
    g_loss = -D(fake).mean()  #! also
    d_loss = D(fake.detach()).mean() - D(real).mean()
#+     opt_g.zero_grad()
#+     g_loss.backward()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()  #! here
    opt_g.zero_grad()  #-
    g_loss.backward()  #- here
    opt_g.step()


for _ in range(3):
    iteration(torch.randn(8, 6), torch.randn(8, 4))
