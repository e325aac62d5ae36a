# /// case
# title = "A frozen extractor stays in train mode and its batch norm drifts"
# category = "mode"
# kind = "frozen-batch-norm-in-train-mode"
# kinds_also_ok = ["batch-norm-statistics-drift", "missing-eval-mode"]
# severity = "warning"
# names = ["extractor", "train", "running_mean"]
# symptom = "running statistics of the frozen part change"
# symptom_check = "int(model.extractor[1].num_batches_tracked) > 5"
# cause = "requires_grad_(False) does not stop batch norm from tracking"
# fix = "keep the extractor in eval mode"
# ///
import torch
import torch.nn as nn


class TransferModel(nn.Module):
    def __init__(self, extractor, features, classes):
        super().__init__()
        self.extractor = extractor
        for p in self.extractor.parameters():
            p.requires_grad = False  #! also
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(features, classes))
#+
#+     def train(self, mode=True):
#+         super().train(mode)
#+         self.extractor.eval()
#+         return self

    def forward(self, x):
        return self.head(self.extractor(x))


def pretrain(extractor, n):
    probe = nn.Linear(10, 2)
    optimizer = torch.optim.Adam([*extractor.parameters(), *probe.parameters()], lr=1e-2)
    for _ in range(n):
        x = torch.randn(32, 6)
        loss = nn.functional.cross_entropy(probe(extractor(x)), (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return extractor


torch.manual_seed(82)
extractor = pretrain(nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU()), n=5)
model = TransferModel(extractor, 10, 3)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
shifted = 3 + 2 * torch.randn(48, 6)
labels = torch.randint(0, 3, (48,))
for epoch in range(3):
    model.train()  #! here
    for x, y in zip(shifted.split(12), labels.split(12)):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
