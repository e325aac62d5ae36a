# /// case
# title = "Features and labels are put into two different random orders"
# category = "data"
# kind = "features-and-labels-shuffled-apart"
# kinds_also_ok = ["misaligned-labels"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["randperm", "shuffle", "labels"]
# symptom = "labels do not belong to their rows any more"
# symptom_check = "not torch.equal(rule(features), labels)"
# cause = "shuffle draws a new permutation for each tensor, so that the pairs are torn apart."
# fix = "one permutation for both"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def rule(features):
    return ((features[:, 0] > 0).long() + (features[:, 1] * features[:, 2] > 0).long())


def shuffle(*tensors):
    return [t[torch.randperm(len(t))] for t in tensors]  #- here
#+     order = torch.randperm(len(tensors[0]))
#+     return [t[order] for t in tensors]


def by_class(n_per_class):
    pool = torch.randn(60 * n_per_class, 5)
    label = rule(pool)
    rows = torch.cat([(label == c).nonzero().squeeze(1)[:n_per_class] for c in range(3)])
    return pool[rows], label[rows]


class Classifier(nn.Module):
    def __init__(self, fields=5, width=24, classes=3):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(fields, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, classes),
        )

    def forward(self, x):
        return self.net(x)


torch.manual_seed(86)
features, labels = by_class(40)
features, labels = shuffle(features, labels)  #! here
train, valid = slice(0, 96), slice(96, None)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(6):
    for x, y in zip(features[train].split(24), labels[train].split(24)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        hits = (model(features[valid]).argmax(1) == labels[valid]).float().mean()
    print(epoch, loss.item(), hits.item())
