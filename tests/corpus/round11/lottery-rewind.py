# /// case
# title = "The weights kept for rewinding are the live ones"
# category = "identity"
# kind = "state-dict-not-copied"
# kinds_also_ok = ["state-dict-aliases-parameters", "snapshot-is-a-reference", "rewind-without-effect", "missing-deepcopy"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["initial", "state_dict", "load_state_dict", "rewind"]
# symptom = "rewinding does nothing: the pruned network goes on from the trained weights"
# symptom_check = 'initial["0.weight"].data_ptr() == network[0].weight.data_ptr()'
# cause = "state_dict() returns references to the parameters, which training changes in place."
# fix = "copy.deepcopy(network.state_dict())"
# ///
import copy
from contextlib import contextmanager

import torch
from torch import nn
import torch.nn.functional as F


class Masks:
    """Global magnitude pruning with masks that are kept across rounds."""

    def __init__(self, model):
        self.kept = {n: torch.ones_like(p, dtype=torch.bool) for n, p in model.named_parameters() if p.dim() > 1}

    def prune(self, model, fraction):
        weights = dict(model.named_parameters())
        alive = torch.cat([weights[n].detach()[k].abs() for n, k in self.kept.items()])
        threshold = alive.quantile(fraction)
        for name in self.kept:
            self.kept[name] &= weights[name].detach().abs() > threshold

    @torch.no_grad()
    def apply(self, model):
        for name, p in model.named_parameters():
            if name in self.kept:
                p.mul_(self.kept[name])

    @property
    def density(self):
        return sum(k.sum().item() for k in self.kept.values()) / sum(k.numel() for k in self.kept.values())


@contextmanager
def evaluating(model):
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(was)


def train(model, masks, x, y, epochs, lr=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for _ in range(epochs):
        for index in torch.randperm(len(x)).split(50):
            loss = F.cross_entropy(model(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            masks.apply(model)
        losses.append(loss.item())
    return losses


def accuracy(model, x, y):
    with evaluating(model) as frozen:
        return (frozen(x).argmax(1) == y).float().mean().item()


def rewind(model, masks, state):
    model.load_state_dict(state)  #! also
    masks.apply(model)


def parity_like(count, bits=10):
    x = torch.randn(count, bits)
    return x, ((x[:, 0] * x[:, 1] > 0).long() + 2 * (x[:, 2] + x[:, 3] > 0).long())


torch.manual_seed(36)
train_x, train_y = parity_like(500)
test_x, test_y = parity_like(300)
network = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 4))
masks = Masks(network)
initial = network.state_dict()  #- here
#+ initial = copy.deepcopy(network.state_dict())
table = []
for round_number in range(4):
    losses = train(network, masks, train_x, train_y, epochs=8)
    table.append((masks.density, losses[0], losses[-1], accuracy(network, test_x, test_y)))
    masks.prune(network, fraction=0.4)
    rewind(network, masks, initial)  #! also
for density, first, last, hit in table:
    print(f"density {density:.3f} loss {first:.3f} -> {last:.3f} accuracy {hit:.3f}")
