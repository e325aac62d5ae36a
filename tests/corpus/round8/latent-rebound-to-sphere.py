# /// case
# title = "The projection binds the optimized latent's name to a new tensor"
# category = "leaf"
# kind = "optimized-tensor-rebound"
# kinds_also_ok = ["leaf-replaced", "backward-through-freed-graph"]
# severity = "error"
# names = ["latent", "normalize", "copy_"]
# symptom = "the third iteration's backward raises"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "F.normalize gives a new tensor with a history that grows from step to step, while the optimizer has the first leaf."
# fix = "write the projection into the leaf under no_grad"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Decoder(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(latent, 24), nn.Tanh(), nn.Linear(24, 20))

    def forward(self, z):
        return self.net(z)


def pretrain(decoder, data, steps=6):
    encoder = nn.Linear(20, 6)
    optimizer = torch.optim.Adam([*decoder.parameters(), *encoder.parameters()], lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(decoder(F.normalize(encoder(data), dim=1)), data).backward()
        optimizer.step()
    return decoder.eval().requires_grad_(False)


def invert(decoder, observed, mask, steps=12):
    """Looks for codes on the unit sphere whose decoding agrees where something was observed."""
    latent = F.normalize(torch.randn(len(observed), 6), dim=1).requires_grad_()
    optimizer = torch.optim.Adam([latent], lr=5e-2)  #! also
    trace = []
    for _ in range(steps):
        error = (decoder(latent) - observed)[mask].square().mean()
        optimizer.zero_grad()
        error.backward()  #! also
        optimizer.step()
        latent = F.normalize(latent, dim=1)  #- here
#+         with torch.no_grad():
#+             latent.copy_(F.normalize(latent, dim=1))
        trace.append(error.item())
    return latent.detach(), trace


torch.manual_seed(22)
data = torch.randn(50, 5) @ torch.randn(5, 20)
decoder = pretrain(Decoder(), data)
mask = torch.rand(8, 20) < 0.6
codes, trace = invert(decoder, data[:8], mask)
print(trace[0], trace[-1], codes.norm(dim=1).tolist())
