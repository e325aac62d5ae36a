# /// case
# title = "Functional dropout is always on"
# category = "train-eval-mode"
# kind = "dropout-always-on"
# severity = "warning"
# names = ["dropout", "training"]
# difficulty = "hard"
# symptom = "Two evaluations of the same batch differ although the model is in eval mode; silent."
# symptom_check = "not torch.equal(first, second)"
# cause = "F.dropout has training=True by default; it does not follow module.eval()."
# fix = "Pass training=self.training."
# evidence = [{ url = "https://github.com/rixwew/pytorch-fm/issues/21" }, { url = "https://github.com/BogiHsu/Tacotron2-PyTorch/issues/8" }]
# ///
import torch
import torch.nn.functional as F
from torch import nn


class AttentionPool(nn.Module):
    def __init__(self, dim, p=0.25):
        super().__init__()
        self.score = nn.Linear(dim, 1, bias=False)
        self.p = p

    def forward(self, h):
        w = self.score(h).softmax(dim=1)
        w = F.dropout(w, self.p)  #- here
#+         w = F.dropout(w, self.p, training=self.training)
        return (w * h).sum(1)


class SetClassifier(nn.Module):
    def __init__(self, n_in=4, dim=24):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(n_in, dim), nn.ReLU())
        self.pool = AttentionPool(dim)
        self.rho = nn.Linear(dim, 1)

    def forward(self, x):
        return self.rho(self.pool(self.phi(x))).squeeze(-1)


torch.manual_seed(0)
sets = torch.randn(200, 7, 4)
labels = (sets[..., 0].max(1).values > 1.3).float()
net = SetClassifier()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(8):
    net.train()
    for xb, yb in zip(sets.split(50), labels.split(50)):
        loss = F.binary_cross_entropy_with_logits(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
net.eval()
with torch.no_grad():
    first, second = net(sets), net(sets)  #! also
print(loss.item(), (first - second).abs().max().item())
