# /// case
# title = "Discriminator steps before the generator's backward call of the same pass"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# kinds_also_ok = ["step-before-backward"]
# severity = "error"
# names = ["opt_D", "step", "G_loss", "D"]
# symptom = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "the step writes weights that the generator's graph saved"
# fix = "compute the generator's loss after the step"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/39141", title = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation?" },
#     { url = "https://github.com/MorvanZhou/PyTorch-Tutorial/pull/91", title = "Update 406_GAN" },
# ]
# ///
import math

import torch
import torch.nn as nn

torch.manual_seed(1)
BATCH_SIZE, N_IDEAS, ART = 32, 5, 15
POINTS = torch.linspace(-1, 1, ART).repeat(BATCH_SIZE, 1)


def artist_works():
    r = 0.02 * torch.randn(BATCH_SIZE, 1)
    return torch.sin(POINTS * math.pi) + r


G = nn.Sequential(nn.Linear(N_IDEAS, 64), nn.ReLU(), nn.Linear(64, ART))
D = nn.Sequential(nn.Linear(ART, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())
opt_D = torch.optim.Adam(D.parameters(), lr=1e-4)
opt_G = torch.optim.Adam(G.parameters(), lr=1e-4)

for step in range(6):
    paintings = artist_works()
    ideas = torch.randn(BATCH_SIZE, N_IDEAS)
    generated = G(ideas)

    prob_artist0 = D(paintings)
    prob_artist1 = D(generated)

    D_loss = -torch.mean(torch.log(prob_artist0) + torch.log(1.0 - prob_artist1))
    G_loss = torch.mean(torch.log(1.0 - prob_artist1))  #-

    opt_D.zero_grad()
    D_loss.backward(retain_graph=True)
    opt_D.step()  #! here

#+     G_loss = torch.mean(torch.log(1.0 - D(generated)))
    opt_G.zero_grad()
    G_loss.backward()  #! here
    opt_G.step()
print(D_loss.item(), G_loss.item())
