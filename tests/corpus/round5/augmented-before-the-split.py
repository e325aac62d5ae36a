# /// case
# title = "Variants of one shape are in training and in test"
# category = "data"
# kind = "leak-through-augmentation"
# kinds_also_ok = ["data-leak"]
# severity = "warning"
# names = ["augment", "split", "randperm"]
# symptom = "a held-out sample is a turned copy of a training sample"
# symptom_check = "len(set(train_shapes) & set(test_shapes)) > 0"
# cause = "the split is over augmented variants"
# fix = "split the shapes"
# evidence = [
#     { url = "https://github.com/yogeshhk/MidcurveNN/issues/39", title = "Phase I: augmentation leakage (Bug 7) and non-regenerable `unet-splits/` (Bug 11)" },
# ]
# ///
import math

import torch
import torch.nn as nn

torch.manual_seed(98)


def variants(profile, n=12):
    """Rotations and translations of a polygon."""
    for k in range(n):
        a = 2 * math.pi * k / n
        turn = torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
        yield profile @ turn + 0.2 * torch.randn(1, 2)


def prepare_data(profiles, test_fraction=0.25):
    samples = [(shape, v) for shape, p in enumerate(profiles) for v in variants(p)]  #- also
    order = torch.randperm(len(samples)).tolist()  #- here
    cut = int(len(samples) * (1 - test_fraction))  #-
    return [samples[i] for i in order[:cut]], [samples[i] for i in order[cut:]]  #-
#+     order = torch.randperm(len(profiles)).tolist()
#+     cut = int(len(profiles) * (1 - test_fraction))
#+     expand = lambda shapes: [(s, v) for s in shapes for v in variants(profiles[s])]
#+     return expand(order[:cut]), expand(order[cut:])


def midcurve(polygon):
    return (polygon[:4] + polygon[4:].flip(0)) / 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
        self.decoder = nn.Sequential(nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x):
        return self.decoder(self.encoder(x.flatten(1))).view(-1, 4, 2)


train, test = prepare_data([torch.randn(8, 2) for _ in range(8)])
train_shapes, test_shapes = [s for s, _ in train], [s for s, _ in test]
x = torch.stack([v for _, v in train])
y = torch.stack([midcurve(v) for _, v in train])
held = torch.stack([v for _, v in test])
held_y = torch.stack([midcurve(v) for _, v in test])
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for idx in torch.randperm(len(x)).split(24):
        loss = (model(x[idx]) - y[idx]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    print(loss.item(), (model(held) - held_y).square().mean().item())
