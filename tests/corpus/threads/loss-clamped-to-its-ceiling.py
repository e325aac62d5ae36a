# /// case
# title = "The loss itself is clamped from above, so bad batches teach nothing"
# category = "uncovered"
# kind = "zero-gradient-op"
# kinds_also_ok = ["clamp-saturated"]
# severity = "warning"
# names = ["clamp", "loss"]
# symptom = "all gradients are exactly zero"
# symptom_check = "all(float(p.grad.abs().max()) == 0 for p in net.parameters())"
# cause = "clamp(max=1) with losses of 25"
# fix = "a robust loss"
# evidence = [
#     { url = "https://github.com/floringogianu/categorical-dqn/issues/3", title = "Excessive clamping" },
#     { url = "https://github.com/FluxML/Gym.jl/issues/25", title = "PendulumEnv does not use clamped torque" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(13)
net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


def robust(pred, target, ceiling=1.0):
    err = (pred - target).pow(2)  #-
    return err.mean().clamp(max=ceiling)  #- here
#+     err = nn.functional.huber_loss(pred, target, reduction="none", delta=ceiling)
#+     return err.mean()


for step in range(20):
    x = torch.randn(32, 5)
    y = x[:, :1] + 5.0
    optimizer.zero_grad()
    loss = robust(net(x), y)  #! also
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
