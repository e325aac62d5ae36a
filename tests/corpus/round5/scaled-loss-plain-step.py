# /// case
# title = "A scaled loss is stepped without unscaling"
# category = "scale"
# kind = "scaled-loss-not-unscaled"
# kinds_also_ok = ["amp-misuse"]
# severity = "warning"
# names = ["grad_scaler", "scale", "step"]
# symptom = "gradients are 1024 times too large"
# symptom_check = "used.norm() / own.norm() > 100"
# cause = "optimizer.step() instead of scaler.step()"
# fix = "step through the scaler"
# evidence = [
#     { url = "https://github.com/nerfstudio-project/nerfacc/issues/307", title = "Gradient Scaler in sample" },
# ]
# ///
import torch
import torch.nn as nn


class RadianceField(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.arange(4))
        self.mlp = nn.Sequential(nn.Linear(3 * 8, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, x):
        angles = (x[..., None] * self.freqs).flatten(-2)
        out = self.mlp(torch.cat([angles.sin(), angles.cos()], -1))
        return out[..., :3].sigmoid(), nn.functional.softplus(out[..., 3])


def render(field, origin, direction, n=12):
    t = torch.linspace(0.1, 2.0, n)
    rgb, sigma = field(origin[:, None] + t[:, None] * direction[:, None])
    alpha = 1 - torch.exp(-sigma * (t[1] - t[0]))
    trans = torch.cumprod(torch.cat([torch.ones(len(alpha), 1), 1 - alpha[:, :-1]], 1), 1)
    return ((trans * alpha)[..., None] * rgb).sum(1)


torch.manual_seed(79)
field = RadianceField()
optimizer = torch.optim.SGD(field.parameters(), lr=1e-5)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
grad_scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 10)
for step in range(6):
    origin = torch.randn(24, 3) * 0.1
    direction = nn.functional.normalize(torch.randn(24, 3), dim=1)
    pixels = (direction * 0.5 + 0.5)
    loss = nn.functional.smooth_l1_loss(render(field, origin, direction), pixels)
    own = torch.autograd.grad(loss, field.mlp[0].weight, retain_graph=True)[0]
    optimizer.zero_grad()
    grad_scaler.scale(loss).backward()  #! also
#+     grad_scaler.unscale_(optimizer)
    used = field.mlp[0].weight.grad.clone()
    optimizer.step()  #- here
#+     grad_scaler.step(optimizer)
#+     grad_scaler.update()
    scheduler.step()
print(loss.item(), (used.norm() / own.norm()).item())
