# /// case
# title = "The running mean of the loss is made of losses with their graphs"
# category = "retention"
# kind = "graph-kept-by-running-mean"
# kinds_also_ok = ["loss-history-keeps-graph", "graph-retained", "memory-grows"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["meter", "update", "value"]
# symptom = "the graph behind the meter's value grows with each step"
# symptom_check = "meter.value.grad_fn is not None"
# cause = "The mean is linked to the graph of each loss that it has seen."
# fix = "loss.detach() or loss.item()"
# ///
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Meter:
    decay: float = 0.9
    value: torch.Tensor | None = None
    shown: list = field(default_factory=list)

    def update(self, new):
        self.value = new if self.value is None else self.decay * self.value + (1 - self.decay) * new  #! here

    def show(self, tag):
        self.shown.append(f"{tag}: {self.value.item():.4f}")  #! also


class MessagePassing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width + 1, width), nn.SiLU())
        self.update = nn.Linear(2 * width, width)

    def forward(self, h, edges, length):
        source, target = edges
        m = self.message(torch.cat([h[source], h[target], length], 1))
        collected = torch.zeros_like(h).index_add(0, target, m)
        return h + self.update(torch.cat([h, collected], 1))


class MeshModel(nn.Module):
    def __init__(self, features, width, layers):
        super().__init__()
        self.encode = nn.Linear(features, width)
        self.layers = nn.ModuleList(MessagePassing(width) for _ in range(layers))
        self.decode = nn.Linear(width, 1)

    def forward(self, x, edges, length):
        h = self.encode(x)
        for layer in self.layers:
            h = layer(h, edges, length)
        return self.decode(h).squeeze(-1)


def random_mesh(nodes, neighbours=4):
    place = torch.rand(nodes, 2)
    distance = torch.cdist(place, place)
    near = distance.topk(neighbours + 1, largest=False).indices[:, 1:]
    target = torch.arange(nodes).repeat_interleave(neighbours)
    edges = torch.stack([near.reshape(-1), target])
    return place, edges, distance[edges[0], edges[1]].unsqueeze(1)


torch.manual_seed(17)
model, meter = MeshModel(2, 16, 2), Meter()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(24):
    place, edges, length = random_mesh(40)
    pressure = (3 * place[:, 0]).sin() * place[:, 1]
    loss = nn.functional.smooth_l1_loss(model(place, edges, length), pressure)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    meter.update(loss)  #- here
#+     meter.update(loss.detach())
    if step % 6 == 5:
        meter.show(f"step {step}")
print("\n".join(meter.shown))
