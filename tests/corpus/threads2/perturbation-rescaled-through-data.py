# /// case
# title = "Generated perturbation is rescaled through .data"
# category = "in-place"
# kind = "silent-inplace-through-data"
# kinds_also_ok = ["saved-changed-unseen", "graph-break-data", "stale-alias-read"]
# severity = "warning"
# names = ["delta_im", "data"]
# symptom = "the generator's gradient lacks the factor of the rescaling"
# symptom_check = "ratio > 0.999"
# cause = "a write through .data is not in the graph"
# fix = "multiply out of place"
# evidence = [
#     { url = "https://github.com/OmidPoursaeed/Generative_Adversarial_Perturbations/issues/4", title = "Wrong Implementation" },
# ]
# ///
import torch
import torch.nn as nn


class Perturb(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 3, 3, padding=1), nn.Tanh())

    def forward(self, x):
        return self.net(x)


MAG_IN = 8.0 / 255
STD = torch.tensor([0.229, 0.224, 0.225])


def normalize_and_scale(delta_im):
    """Brings each channel of the perturbation to the allowed magnitude."""
#+     scaled = []
    for c in range(3):
        peak = delta_im.detach()[:, c].abs().amax((1, 2), keepdim=True)
        scale = (MAG_IN / STD[c] / peak).clamp(max=1.0)
        delta_im.data[:, c] = delta_im.data[:, c] * scale  #- here
    return delta_im  #-
#+         scaled.append(delta_im[:, c] * scale)
#+     return torch.stack(scaled, 1)


torch.manual_seed(35)
target_net = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 5))
target_net.eval().requires_grad_(False)
generator = Perturb()
optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
for batch in range(4):
    image = torch.rand(6, 3, 9, 9)
    truth = target_net(image).argmin(1)
    raw = generator(image)
    raw.retain_grad()
    delta_im = normalize_and_scale(raw)  #! also
    adv = image + delta_im
    adv.retain_grad()
    loss = nn.functional.cross_entropy(target_net(adv), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
ratio = (raw.grad.norm() / adv.grad.norm()).item()
print(loss.item(), ratio)
