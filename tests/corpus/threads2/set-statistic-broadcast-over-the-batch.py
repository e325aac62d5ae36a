# /// case
# title = "Prediction (N, 1) is compared with a target (N,)"
# category = "loss"
# kind = "loss-shape-broadcast"
# severity = "warning"
# names = ["y", "y_pred"]
# symptom = "the model learns the mean of all targets"
# symptom_check = "(16, 16) in shapes"
# cause = "the difference is (N, N) by broadcasting"
# fix = "squeeze the prediction"
# evidence = [
#     { url = "https://github.com/manzilzaheer/DeepSets/pull/1", title = "fixed broadcasting issue between y and y_pred in PopStats" },
#     { url = "https://github.com/benedekrozemberczki/pytorch_geometric_temporal/pull/233", title = "Fix numerical bug in introduction.rst examples" },
# ]
# ///
import torch
from torch import nn


class DeepSet(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(1, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU())
        self.rho = nn.Sequential(nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, 1))

    def forward(self, sets):
        return self.rho(self.phi(sets).mean(1))


def generate(n_sets, size):
    """Sets of samples and the entropy of the Gaussian that they were drawn from."""
    sigma = torch.rand(n_sets) * 2 + 0.1
    sets = torch.randn(n_sets, size, 1) * sigma.view(-1, 1, 1)
    return sets, torch.log(sigma) + 1.4189


def train(epochs, batch=16):
    model = DeepSet()
    optim = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    shapes = set()
    sets, target = generate(64, 25)
    for epoch in range(epochs):
        for idx in torch.randperm(64).split(batch):
            y_pred = model(sets[idx])  #- also
#+             y_pred = model(sets[idx]).squeeze(1)
            y = target[idx]
            error = y_pred - y  #! here
            shapes.add(tuple(error.shape))
            loss = error.pow(2).mean()  #! also
            optim.zero_grad()
            loss.backward()
            optim.step()
    return shapes, loss.item()


torch.manual_seed(71)
shapes, final = train(3)
print(shapes, final)
