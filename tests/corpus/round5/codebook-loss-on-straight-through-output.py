# /// case
# title = "The codebook's loss is taken of the straight-through output"
# category = "graph-break"
# kind = "straight-through-hides-parameter"
# kinds_also_ok = ["parameter-without-gradient", "graph-break-detach"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["codebook_loss", "z_q", "codebook"]
# symptom = "the codebook keeps its initialisation"
# symptom_check = "vq.codebook.weight.grad is None"
# cause = "in z + (q - z).detach() the codebook has no path"
# fix = "compute the loss of q before it is made straight-through"
# evidence = [
#     { url = "https://github.com/showlab/Olaf-World/issues/8", title = "VQLAM: codebook never receives gradients (codebook loss uses the straight-through output)" },
#     { url = "https://github.com/andylolu2/jax-vqvae-gpt/issues/2", title = "Possible bug in VQ loss gradient" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes=16, dim=8):
        super().__init__()
        self.codebook = nn.Embedding(n_codes, dim)

    def forward(self, x):
        distance = torch.cdist(x, self.codebook.weight)
        indices = distance.argmin(dim=-1)
        z = self.codebook(indices)
        z_q = x + (z - x).detach()  #! also
        return z_q, z, indices


class LatentActionModel(nn.Module):
    def __init__(self, obs=20, dim=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(2 * obs, 32), nn.GELU(), nn.Linear(32, dim))
        self.vq = VectorQuantizer(dim=dim)
        self.dec = nn.Sequential(nn.Linear(obs + dim, 32), nn.GELU(), nn.Linear(32, obs))

    def forward(self, frame, following):
        z_e = self.enc(torch.cat([frame, following], -1))
        z_q, _, indices = self.vq(z_e)  #-
#+         z_q, z, indices = self.vq(z_e)
        recon = F.mse_loss(self.dec(torch.cat([frame, z_q], -1)), following)
        codebook_loss = F.mse_loss(z_q, z_e.detach())  #- here
        commit = F.mse_loss(z_e, z_q.detach())  #-
#+         codebook_loss = F.mse_loss(z, z_e.detach())
#+         commit = F.mse_loss(z_e, z.detach())
        return recon + codebook_loss + 0.25 * commit, indices


torch.manual_seed(0)
model = LatentActionModel()
vq = model.vq
optim = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.0)
for step in range(10):
    frame = torch.randn(32, 20)
    loss, used = model(frame, frame + 0.1 * torch.randn(32, 20))
    optim.zero_grad()
    loss.backward()
    optim.step()
print(loss.item(), used.unique().numel())
