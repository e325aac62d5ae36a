# /// case
# title = "The generator step feeds D(fake.detach())"
# category = "gan"
# kind = "graph-break-detach"
# severity = "warning"
# names = ["fake", "G"]
# difficulty = "medium"
# symptom = "silent: the generator's parameters keep grad None"
# symptom_check = "all(p.grad is None for p in G.parameters())"
# cause = "detach belongs to the discriminator step only"
# fix = "D(fake)"
# evidence = [
#     { url = "https://github.com/nikhilsinghmus/image2reverb/issues/37" },
#     { url = "https://github.com/tamarott/SinGAN/pull/117" },
#     { url = "https://github.com/wangle53/CSA-CDGAN/issues/5" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)
Z, X = 4, 6
G = nn.Sequential(nn.Linear(Z, 24), nn.ReLU(), nn.Linear(24, X))
D = nn.Sequential(nn.Linear(X, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
g_opt, d_opt = torch.optim.Adam(G.parameters(), 2e-4), torch.optim.Adam(D.parameters(), 2e-4)
lossf = nn.BCEWithLogitsLoss()
for step in range(5):
    real = torch.randn(16, X) * 0.5 + 1
    fake = G(torch.randn(16, Z))
    d_opt.zero_grad()
    d_loss = lossf(D(real), torch.ones(16, 1)) + lossf(D(fake.detach()), torch.zeros(16, 1))
    d_loss.backward()
    d_opt.step()

    g_opt.zero_grad()
    g_loss = lossf(D(fake.detach()), torch.ones(16, 1))  #- here
#+     g_loss = lossf(D(fake), torch.ones(16, 1))
    g_loss.backward()
    g_opt.step()
print(d_loss.item(), g_loss.item())
