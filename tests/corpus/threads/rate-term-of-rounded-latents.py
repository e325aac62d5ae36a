# /// case
# title = "Compression model quantises with round() and no straight-through estimator"
# category = "partial-cut"
# kind = "zero-gradient-op"
# kinds_also_ok = ["graph-break-non-differentiable"]
# severity = "warning"
# names = ["latents", "round"]
# symptom = "the encoder's gradient is exactly zero"
# symptom_check = "all(float(p.grad.abs().max()) == 0 for p in encoder.parameters())"
# cause = "round() has derivative zero"
# fix = "z + (z.round() - z).detach()"
# evidence = [
#     { url = "https://github.com/Justin-Tan/generative-compression/issues/51", title = "Question about quantizer" },
#     { url = "https://github.com/Justin-Tan/generative-compression/issues/27", title = "Question about gradient calculation in the quantizer" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(21)
encoder = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Linear(16, 5))
decoder = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 12))
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)


def quantise(z):
    return torch.round(z * 4) / 4  #- here
#+     return z + (torch.round(z * 4) / 4 - z).detach()


def run_epoch(batches):
    total = 0.0
    for x in batches:
        latents = quantise(encoder(x))  #! also
        recon = decoder(latents)
        loss = F.mse_loss(recon, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total / len(batches)


data = torch.randn(10, 16, 12)
for epoch in range(3):
    print(run_epoch(data))
