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
    difference = z.unsqueeze(0) - z.unsqueeze(1)
    return difference.square().sum(dim=2).sqrt()


def batch_hard_triplet(z, labels, margin=0.5):
    distance = pairwise_distances(z)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    furthest = (distance * same).max(dim=1).values
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
    loss.backward()
    optimizer.step()
    print(f"triplet {step} {loss.item():.4f}")
