# /// case
# title = "View scores are collected with torch.tensor([...])"
# category = "graph-break"
# kind = "graph-break-new-tensor"
# severity = "warning"
# severity_by_writer = "error"
# names = ["scores", "scorer", "tensor"]
# difficulty = "medium"
# symptom = "the view scorer never receives a gradient"
# symptom_check = "net.scorer.weight.grad is None"
# cause = "torch.tensor copies the values of the 0-d tensors and drops their history"
# fix = "stack the scores"
# evidence = [{ url = "https://discuss.pytorch.org/t/how-to-define-a-leaf-tensor-in-pytorch-0-4-1/28461" }, { url = "https://github.com/fagp/sinkhorn-rebasin/issues/1" }]
# ///
"""Multi-view fusion: the weight of each view is predicted from the view itself."""
import torch
from torch import nn


class FusionNet(nn.Module):
    def __init__(self, views=3, width=10, hidden=20, classes=3):
        super().__init__()
        self.encoders = nn.ModuleList(nn.Sequential(nn.Linear(width, hidden), nn.ReLU()) for _ in range(views))
        self.scorer = nn.Linear(hidden, 1)
        self.out = nn.Linear(hidden, classes)

    def forward(self, views):
        h = [enc(v) for enc, v in zip(self.encoders, views)]
        scores = torch.tensor([self.scorer(x).mean() for x in h])  #- here
#+         scores = torch.stack([self.scorer(x).mean() for x in h])
        weights = torch.softmax(scores, dim=0)  #! also
        fused = sum(w * x for w, x in zip(weights, h))
        return self.out(fused)


torch.manual_seed(0)
net = FusionNet()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for step in range(20):
    y = torch.randint(0, 3, (24,))
    informative = torch.randn(24, 10) + 2.0 * nn.functional.one_hot(y, 10)
    views = [torch.randn(24, 10), informative, torch.randn(24, 10)]
    loss = criterion(net(views), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
