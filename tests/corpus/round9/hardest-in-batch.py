# /// case
# title = "The pairwise distances have the root of an exact zero on their diagonal"
# category = "numerics"
# kind = "sqrt-at-zero"
# kinds_also_ok = ["nan-gradient-of-sqrt", "infinite-derivative-of-sqrt", "nan-from-distance-to-itself"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sqrt", "pairwise_distances", "distance"]
# symptom = "the loss of the first step is right, all that follows is nan"
# symptom_check = "bool(model.hidden.weight.isnan().any())"
# cause = "The derivative of sqrt at zero is infinite; times the zero that comes back to the diagonal it is nan."
# fix = "a clamp (or a small number) under the root"
# ///
import torch
from torch import nn


class Embedder(nn.Module):
    def __init__(self, inputs=9, width=6):
        super().__init__()
        self.hidden = nn.Linear(inputs, 30)
        self.out = nn.Linear(30, width)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


def pairwise_distances(z):
    difference = z.unsqueeze(0) - z.unsqueeze(1)  #! also
    return difference.square().sum(dim=2).sqrt()  #- here
#+     return difference.square().sum(dim=2).clamp(min=1e-12).sqrt()


def batch_hard_triplet(z, labels, margin=0.5):
    distance = pairwise_distances(z)  #! also
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    furthest = (distance * same).max(dim=1).values  #! also
    nearest = distance.masked_fill(same, float("inf")).min(dim=1).values
    return torch.relu(furthest - nearest + margin).mean()


class BalancedSampler:
    def __init__(self, classes, per_class, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.centres = torch.randn(classes, 9, generator=self.generator)
        self.labels = torch.arange(classes).repeat_interleave(per_class)

    def __iter__(self):
        while True:
            noise = torch.randn(len(self.labels), 9, generator=self.generator)
            yield self.centres[self.labels] + 0.4 * noise, self.labels


torch.manual_seed(67)
model = Embedder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for step, (x, labels) in enumerate(BalancedSampler(5, 6, seed=67)):
    if step == 12:
        break
    loss = batch_hard_triplet(model(x), labels)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()  #! also
    print(f"triplet {step} {loss.item():.4f}")
