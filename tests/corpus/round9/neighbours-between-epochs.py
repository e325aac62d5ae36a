# /// case
# title = "The evaluation after each epoch leaves the encoder in eval mode"
# category = "mode"
# kind = "eval-mode-kept-in-training"
# kinds_also_ok = ["missing-train-call", "model-stays-in-eval", "dropout-and-batchnorm-off"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["eval", "train", "knn_accuracy", "model"]
# symptom = "from the second epoch on there is no dropout, batch norm uses its running statistics, and the projection is left out"
# symptom_check = "model.norm.num_batches_tracked.item() == 6"
# cause = "knn_accuracy calls model.eval() and nobody calls model.train() again: it is called once, before the loop over epochs."
# fix = "model.train() at the beginning of each epoch"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 12, 5, stride=2)
        self.norm = nn.BatchNorm1d(12)
        self.drop = nn.Dropout(0.2)
        self.project = nn.Linear(12, 16)

    def forward(self, x):
        h = F.relu(self.norm(self.conv(x))).mean(-1)
        return h if not self.training else self.project(self.drop(h))  #! also


def nt_xent(a, b, temperature=0.5):
    z = F.normalize(torch.cat([a, b]), dim=1)
    similarity = (z @ z.T / temperature).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
    partner = torch.arange(len(z)).roll(len(a))
    return F.cross_entropy(similarity, partner)


def knn_accuracy(model, data, labels, k=5):
    model.eval()  #! here
    with torch.no_grad():
        z = F.normalize(model(data), dim=1)
        near = (z @ z.T).fill_diagonal_(-2).topk(k, dim=1).indices
    return (labels[near].mode(1).values == labels).float().mean().item()  #! here


def view(x):
    return x.roll(int(torch.randint(0, 8, ())), -1) * (0.9 + 0.2 * torch.rand(len(x), 1, 1)) + 0.1 * torch.randn_like(x)


torch.manual_seed(61)
labels = torch.randint(0, 3, (96,))
ticks = torch.linspace(0, 6.28, 24)
waves = torch.stack([torch.stack([(f * ticks).sin(), (f * ticks).cos()]) for f in (1.0, 3.0, 5.0)])
data = waves[labels] + 0.3 * torch.randn(96, 2, 24)
model = Backbone()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
model.train()  #- here
for epoch in range(4):  #! here
#+     model.train()
    for batch in data[torch.randperm(96)].split(32):
        loss = nt_xent(model(view(batch)), model(view(batch)))  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 3), "5-nn", knn_accuracy(model, data, labels))  #! also
