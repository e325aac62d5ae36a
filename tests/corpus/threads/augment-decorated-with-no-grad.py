# /// case
# title = "A helper decorated with @torch.no_grad() is also used for the trained branch"
# category = "helper"
# kind = "graph-break-no-grad"
# kinds_also_ok = ["root-without-history", "gradient-never-arrives"]
# severity = "warning"
# names = ["no_grad", "embed_view"]
# symptom = "only the projector trains; the encoder's grad is None"
# symptom_check = "all(p.grad is None for p in encoder.parameters())"
# cause = "embed_view runs under no_grad"
# fix = "drop the decorator and wrap the key view only"
# evidence = [
#     { url = "https://github.com/grey-eye/talking-heads/pull/39", title = "no grad for vgg and vgg face to save gpu memory" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
encoder = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 12))
projector = nn.Linear(12, 6)
opt = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=1e-3)


@torch.no_grad()  #- here
def embed_view(x, noise=0.1):
    view = x + noise * torch.randn_like(x)
    return encoder(view)  #! here


def nt_xent(a, b, temperature=0.2):
    logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).t() / temperature
    return F.cross_entropy(logits, torch.arange(len(a)))


for step in range(8):
    x = torch.randn(32, 16)
    za, zb = projector(embed_view(x)), projector(embed_view(x))  #! also
    loss = nt_xent(za, zb)
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
