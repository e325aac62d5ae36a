# /// case
# title = "Averaged weights are updated with gradient tracking on"
# category = "retention-leak"
# kind = "graph-carried-across-steps"
# kinds_also_ok = ["graph-retained-list", "graph-retained", "missing-no-grad"]
# severity = "warning"
# names = ["shadow", "update", "decay"]
# difficulty = "medium"
# symptom = "each shadow weight carries a chain of operations that grows with every step"
# symptom_check = "all(v.requires_grad for v in ema.shadow.values())"
# cause = "the update is an expression of the live parameters outside no_grad; the new shadow refers to the previous one through the graph"
# fix = "decorate update() with torch.no_grad()"
# evidence = [{ url = "https://github.com/alexhernandezgarcia/gflownet/pull/133" }, { url = "https://github.com/ultralytics/ultralytics/pull/25315" }, { url = "https://github.com/fadel/pytorch_ema/issues/1" }]
# ///
"""Noisy-label classification, evaluated with an exponential moving average of the weights."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class WeightAverage:
    def __init__(self, model, decay=0.95):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

#+     @torch.no_grad()
    def update(self, model):  #! here
        for name, p in model.named_parameters():
            self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p  #! here

    @torch.no_grad()
    def evaluate(self, model, x, y):
        model.eval()
        logits = functional_call(model, self.shadow, (x,))
        model.train()
        return (logits.argmax(dim=1) == y).float().mean().item()


def moons(n, flip=0.0):
    y = torch.randint(0, 2, (n,))
    t = torch.rand(n) * 3.1416
    x = torch.stack([t.cos() + y, t.sin() * (1 - 2 * y) + 0.3 * y], dim=1) + 0.1 * torch.randn(n, 2)
    noisy = torch.where(torch.rand(n) < flip, 1 - y, y)
    return x, noisy


def main(steps=60):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    ema = WeightAverage(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(steps):
        x, y = moons(64, flip=0.2)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)  #! also
    return model, ema


model, ema = main()
print("accuracy of averaged weights", ema.evaluate(model, *moons(200)))
