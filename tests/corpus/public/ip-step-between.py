# /// case
# title = "opt_d.step() runs between the generator's forward through D and its backward"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["g_loss", "disc"]
# difficulty = "hard"
# symptom = "RuntimeError: ... modified by an inplace operation ... is at version 2; expected version 1"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "the step changes D's weights in place after g_loss saved them"
# fix = "compute g_loss after opt_d.step()"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/39141" },
#     { url = "https://github.com/MorvanZhou/PyTorch-Tutorial/pull/91" },
#     { url = "https://github.com/leftthomas/SRGAN/issues/89" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(50)
gen = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 8))
disc = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-4)
opt_d = torch.optim.Adam(disc.parameters(), lr=1e-4)
bce = nn.BCEWithLogitsLoss()
one, zero = torch.ones(10, 1), torch.zeros(10, 1)

for it in range(4):
    real = torch.randn(10, 8) + 2
    fake = gen(torch.randn(10, 3))
    d_loss = bce(disc(real), one) + bce(disc(fake.detach()), zero)
    g_loss = bce(disc(fake), one)  #- also

    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()  #! here

#+     g_loss = bce(disc(fake), one)
    opt_g.zero_grad()
    g_loss.backward()  #! also
    opt_g.step()
print(d_loss.item(), g_loss.item())
