# /// case
# title = "All weights of a deep network are drawn with standard deviation one"
# category = "scale"
# kind = "initialisation-too-large"
# kinds_also_ok = ["exploding-gradient", "exploding-activation"]
# severity = "warning"
# names = ["init_weights", "normal_", "std"]
# symptom = "gradients too large by many orders of magnitude"
# symptom_check = "first_norm > 1e4"
# cause = "Each of the eight layers multiplies the size of its input with about the root of its width."
# fix = "a standard deviation by the fan-in"
# ///
import torch
import torch.nn as nn


class NoisePredictor(nn.Module):
    """Predicts the noise of a diffusion step on points of the plane."""

    def __init__(self, width=48, depth=6, levels=20):
        super().__init__()
        self.level = nn.Embedding(levels, width)
        self.first = nn.Linear(2, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.last = nn.Linear(width, 2)
        self.apply(self.init_weights)

    @staticmethod
    def init_weights(module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=1.0)  #- here
#+             nn.init.normal_(module.weight, std=(2.0 / module.in_features) ** 0.5)
            nn.init.zeros_(module.bias)

    def forward(self, x, t):
        h = torch.relu(self.first(x) + self.level(t))
        for layer in self.hidden:
            h = torch.relu(layer(h))  #! also
        return self.last(h)


torch.manual_seed(99)
LEVELS = 20
alpha_bar = torch.cumprod(1 - torch.linspace(1e-3, 0.2, LEVELS), dim=0)
model = NoisePredictor(levels=LEVELS)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
norms = []
for step in range(12):
    clean = torch.randn(64, 2) * 0.1 + torch.randint(0, 2, (64, 1)) * 2 - 1
    t = torch.randint(0, LEVELS, (64,))
    noise = torch.randn_like(clean)
    keep = alpha_bar[t].unsqueeze(1)
    noisy = keep.sqrt() * clean + (1 - keep).sqrt() * noise
    loss = (model(noisy, t) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())
    optimizer.step()
    print(step, loss.item(), norms[-1])
first_norm = norms[0]
