# /// case
# title = "Weights are clamped through .data between forward and backward"
# category = "in-place"
# kind = "data-write-before-backward"
# kinds_also_ok = ["in-place-on-saved-tensor", "silent-in-place-data"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["clamp_", "data", "clip"]
# symptom = "the gradient of the first layer is computed with other weights than the forward pass used"
# symptom_check = "max(p.abs().max().item() for p in critic.parameters()) > clip + 1e-4"
# cause = "writes to .data are not seen by the version check"
# fix = "clamp after the step"
# ///
import torch
import torch.nn as nn

torch.manual_seed(46)
critic = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
generator = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-3)
opt_g = torch.optim.RMSprop(generator.parameters(), lr=5e-4)
clip = 0.05


def clamp_weights(net):
    for p in net.parameters():
        p.data.clamp_(-clip, clip)  #! also


def sample(n):
    return torch.randn(n, 3) * torch.tensor([1.0, 0.2, 0.5]) + 1


for it in range(5):
    for _ in range(3):
        real, fake = sample(32), generator(torch.randn(32, 2)).detach()
        opt_c.zero_grad()
        loss_c = critic(fake).mean() - critic(real).mean()
        clamp_weights(critic)  #- here
        loss_c.backward()  #! also
        opt_c.step()
#+         clamp_weights(critic)
    opt_g.zero_grad()
    loss_g = -critic(generator(torch.randn(32, 2))).mean()
    loss_g.backward()
    opt_g.step()
    print(it, loss_c.item(), loss_g.item())
