# /// case
# title = "sign() in the middle: gradients exist but are exactly zero before it"
# category = "graph-break"
# kind = "zero-gradient-op"
# severity = "warning"
# names = ["bits", "enc"]
# difficulty = "medium"
# symptom = "silent: encoder gradients are all zero tensors"
# symptom_check = "all(p.grad is not None and bool((p.grad == 0).all()) for p in enc.parameters())"
# cause = "d sign/dx = 0 everywhere; a straight-through estimator is missing"
# fix = "h + (sign(h) - h).detach()"
# evidence = [
#     { url = "https://github.com/Justin-Tan/generative-compression/issues/51" },
#     { url = "https://github.com/torch/nn/issues/1174" },
#     { url = "https://github.com/Justin-Tan/generative-compression/issues/27" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(23)
enc = nn.Linear(12, 6)
dec = nn.Linear(6, 12)
opt = torch.optim.Adam(list(enc.parameters()) + list(dec.parameters()), lr=1e-2)
docs = torch.randn(40, 12)

for epoch in range(6):
    h = enc(docs)
    bits = torch.sign(h)  #- here
#+     bits = h + (torch.sign(h) - h).detach()
    recon = dec(bits)
    loss = (recon - docs).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print("reconstruction", loss.item())
