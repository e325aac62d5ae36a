# /// case
# title = "The step of the hand-written optimizer adds out of place"
# category = "optimizer"
# kind = "update-not-in-place"
# kinds_also_ok = ["result-discarded", "step-changes-nothing"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["add", "step"]
# symptom = "no parameter moves"
# symptom_check = "travel == 0.0"
# cause = "p.add returns a new tensor, which is thrown away."
# fix = "p.add_"
# ///
import copy

import torch
from torch import nn


class SignMomentum(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            fast, slow = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["average"] = torch.zeros_like(p)
                average = state["average"]
                update = average.mul(fast).add(p.grad, alpha=1 - fast).sign_()
                update.add_(p, alpha=group["weight_decay"])
                p.add(update, alpha=-group["lr"])  #- here
#+                 p.add_(update, alpha=-group["lr"])
                average.mul_(slow).add_(p.grad, alpha=1 - slow)
        return loss


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(3, 32)
        self.mix = nn.Linear(32, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, design):
        h = torch.sin(self.lift(design))
        return self.out(h + torch.sin(self.mix(h))).squeeze(1)


torch.manual_seed(37)
design = torch.rand(80, 3)
drag = (design[:, 0] - 0.4) ** 2 + 0.3 * (5 * design[:, 1]).sin() * design[:, 2]
surrogate = Surrogate()
initial = copy.deepcopy(surrogate)
optimizer = SignMomentum(surrogate.parameters(), lr=3e-3, weight_decay=1e-2)
for epoch in range(24):
    optimizer.zero_grad()
    loss = nn.functional.huber_loss(surrogate(design), drag, delta=0.5)
    loss.backward()
    optimizer.step()  #! also
    if epoch % 8 == 0:
        print(epoch, f"{loss.item():.5f}")
travel = sum((a - b).norm().item() for a, b in zip(surrogate.parameters(), initial.parameters()))
print("travelled", round(travel, 4))
