# /// case
# title = "The clamped latent is another tensor than the optimizer's"
# category = "leaf"
# kind = "leaf-rebound"
# kinds_also_ok = ["optimizer-holds-old-tensor", "parameter-not-in-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["z", "optimizer"]
# symptom = "only the first step moves the latent"
# symptom_check = "z is not optimizer.param_groups[0]['params'][0] and path[1] == path[-1]"
# cause = "the optimizer holds the first tensor"
# fix = "clamp in place under no_grad"
# ///
import torch
import torch.nn as nn

torch.manual_seed(27)
decoder = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 20)).requires_grad_(False)
goal = decoder(torch.rand(1, 6) * 2 - 1)


def invert(steps=50, lr=0.05, bound=1.0):
    z = torch.zeros(1, 6, requires_grad=True)
    optimizer = torch.optim.Adam([z], lr=lr)  #! also
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(decoder(z), goal)
        loss.backward()
        optimizer.step()
        z = z.detach().clamp(-bound, bound).requires_grad_(True)  #- here
#+         with torch.no_grad():
#+             z.clamp_(-bound, bound)
        path.append(loss.item())
    return z, path, optimizer


z, path, optimizer = invert()
print(path[0], path[-1])
