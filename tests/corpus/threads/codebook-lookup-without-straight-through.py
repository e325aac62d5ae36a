# /// case
# title = "VQ-VAE decoder fed with looked-up codes: reconstruction does not reach the encoder"
# category = "partial-cut"
# kind = "graph-break-non-differentiable"
# severity = "warning"
# names = ["idx", "quantised"]
# symptom = "the encoder's gradient comes from the commitment term only: the reconstruction loss has no path to it"
# symptom_check = "quantised.grad_fn.name().startswith('Embedding')"
# cause = "argmin has no derivative and the codes are used as they are"
# fix = "z + (codes - z).detach()"
# evidence = [
#     { url = "https://github.com/zalandoresearch/pytorch-vq-vae/issues/6", title = "How does the reconstruction loss update the encoder?" },
#     { url = "https://github.com/CompVis/taming-transformers/issues/35", title = "Straight-through estimator" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(12)
enc, dec = nn.Linear(8, 4), nn.Linear(4, 8)
codebook = nn.Embedding(16, 4)
params = list(enc.parameters()) + list(dec.parameters()) + list(codebook.parameters())
optimizer = torch.optim.Adam(params, lr=1e-3)
for step in range(12):
    x = torch.randn(40, 8)
    z = enc(x)
    idx = torch.cdist(z, codebook.weight).argmin(dim=1)  #! here
    codes = codebook(idx)  #! also
    codebook_loss = (codes - z.detach()).square().mean()
    commitment = (z - codes.detach()).square().mean()
    quantised = codes  #- here
#+     quantised = z + (codes - z).detach()
    recon = (dec(quantised) - x).square().mean()  #! also
    loss = recon + codebook_loss + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
