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

    opt_D.zero_grad()
    D_loss.backward(retain_graph=True)
    opt_D.step()

    G_loss = torch.mean(torch.log(1.0 - D(generated)))
    opt_G.zero_grad()
    G_loss.backward()
    opt_G.step()
print(D_loss.item(), G_loss.item())
