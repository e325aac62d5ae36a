# /// case
# title = "Raw sensor units saturate every tanh, so the first layers get no gradient"
# category = "scale"
# kind = "saturated-activations"
# kinds_also_ok = ["vanishing-gradient", "unnormalized-inputs", "inputs-not-standardised"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["readings", "Tanh"]
# symptom = "the loss stays at the variance of the target: the network gives the same output for all rows"
# symptom_check = "bool((net[0].weight.grad == 0).all())"
# cause = "Inputs of the order of 1e5 make the arguments of tanh so large that its derivative is exactly zero."
# fix = "standardise the columns"
# ///
import torch
from torch import nn


def compressor_log(hours):
    pressure = 101325 + 4000 * torch.randn(hours)
    temperature = 318 + 9 * torch.randn(hours)
    speed = 2950 + 180 * torch.randn(hours)
    vibration = 0.8 + 0.2 * torch.randn(hours)
    load = (pressure - 101325) / 4000 + 0.5 * (temperature - 318) / 9
    wear = 1 + 0.6 * torch.tanh(load) + 0.3 * (vibration - 0.8) / 0.2 * (speed - 2950) / 180
    readings = torch.stack([pressure, temperature, speed, vibration], dim=1)  #! also
    return readings, wear  #- here
#+     return (readings - readings.mean(0)) / readings.std(0), wear


def loader(x, y, size):
    while True:
        order = torch.randperm(len(x))
        for chunk in order.split(size):
            yield x[chunk], y[chunk]


def fit(net, stream, updates):
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(1.0, (k + 1) / 20))
    curve = []
    for _, (x, y) in zip(range(updates), stream):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        curve.append(loss.item())
    return curve


torch.manual_seed(38)
readings, wear = compressor_log(600)
net = nn.Sequential(
    nn.Linear(4, 32), nn.Tanh(),  #! also
    nn.Linear(32, 32), nn.Tanh(),
    nn.Linear(32, 1),
)
curve = fit(net, loader(readings, wear, 100), updates=200)
tail = sum(curve[-20:]) / 20
print(f"first {curve[0]:.4f}, last {tail:.4f}, variance {wear.var():.4f}")
