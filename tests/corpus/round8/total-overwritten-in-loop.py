# /// case
# title = "In the loop over the terms the total is assigned and not added to"
# category = "loss"
# kind = "loss-overwritten"
# kinds_also_ok = ["loss-term-dropped", "assignment-instead-of-accumulation"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["total", "compute_loss"]
# symptom = "only the last term trains anything"
# symptom_check = 'all(p.grad is None for p in model.heads["click"].parameters())'
# cause = "compute_loss binds total anew for each task, so that the losses of the tasks before the last are lost."
# fix = "total = total + ..."
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from dataclasses import dataclass, field


@dataclass
class Settings:
    users: int = 50
    ads: int = 30
    width: int = 8
    weights: dict = field(default_factory=lambda: {"click": 1.0, "buy": 2.0, "dwell": 0.2})


class Ranker(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.user, self.ad = nn.Embedding(s.users, s.width), nn.Embedding(s.ads, s.width)
        self.shared = nn.Sequential(nn.Linear(2 * s.width, 24), nn.ReLU())
        self.heads = nn.ModuleDict({name: nn.Linear(24, 1) for name in s.weights})

    def forward(self, user, ad):
        z = self.shared(torch.cat([self.user(user), self.ad(ad)], dim=1))
        return {name: head(z).squeeze(1) for name, head in self.heads.items()}


def compute_loss(out, batch, weights):
    total = torch.zeros(())
    parts = {}
    for name, weight in weights.items():
        if name == "dwell":
            parts[name] = F.mse_loss(out[name], batch[name])
        else:
            parts[name] = F.binary_cross_entropy_with_logits(out[name], batch[name])
        total = weight * parts[name]  #- here
#+         total = total + weight * parts[name]
    return total, {k: v.item() for k, v in parts.items()}  #! also


torch.manual_seed(11)
s = Settings()
model = Ranker(s)
opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
for step in range(12):
    user, ad = torch.randint(0, s.users, (64,)), torch.randint(0, s.ads, (64,))
    click = ((user + ad) % 3 == 0).float()
    batch = {"click": click, "buy": click * (ad % 2), "dwell": torch.rand(64)}
    loss, log = compute_loss(model(user, ad), batch, s.weights)
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    print(step, log)
