# /// case
# title = "Focal-loss prior bias is applied to the hidden layers too"
# category = "vanishing-exploding"
# kind = "dead-relu"
# severity = "warning"
# names = ["bias", "prior_init", "relu"]
# difficulty = "hard"
# symptom = "All hidden activations are 0 for all samples; only the last bias moves, loss stays at the class prior."
# symptom_check = "alive == 0"
# cause = "The rare-class prior (bias = -log((1 - p) / p), about -6.9) is meant for the final classifier; apply() sets it in every Linear, so all ReLUs are dead from the start."
# fix = "Initialise only the classifier's bias with the prior."
# evidence = [{ url = "https://github.com/keras-team/keras/issues/7057" }, { url = "https://github.com/jvargasmu/population_estimation/issues/68" }, { url = "https://github.com/Yang7879/3D-RecGAN/issues/6" }]
# ///
import math

import torch
import torch.nn.functional as F
from torch import nn


class AnomalyScorer(nn.Module):
    """Rare-event classifier; 1 of 100 samples is positive."""

    def __init__(self, n_in=6, width=24, prior=0.001):
        super().__init__()
        self.fc1 = nn.Linear(n_in, width)
        self.fc2 = nn.Linear(width, width)
        self.cls = nn.Linear(width, 1)
        self.prior_bias = -math.log((1 - prior) / prior)
        self.apply(self.prior_init)  #- here
#+         self.prior_init(self.cls)

    def prior_init(self, m):
        if isinstance(m, nn.Linear):
            nn.init.constant_(m.bias, self.prior_bias)  #! here

    def forward(self, x):
        h = F.relu(self.fc1(x))  #! here
        h = F.relu(self.fc2(h))  #! here
        return self.cls(h).squeeze(-1)


def focal(logits, y, gamma=2.0):
    ce = F.binary_cross_entropy_with_logits(logits, y, reduction="none")
    p = torch.sigmoid(logits)
    pt = torch.where(y > 0, p, 1 - p)
    return ((1 - pt).pow(gamma) * ce).sum() / y.sum().clamp(min=1)


torch.manual_seed(1)
x = torch.randn(600, 6)
y = (x[:, 0] + x[:, 1] > 2.6).float()
model = AnomalyScorer()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(30):
    loss = focal(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()  #! also
with torch.no_grad():
    alive = (F.relu(model.fc1(x)) > 0).float().mean().item()
print("loss", loss.item(), "active share of the first layer", alive)
