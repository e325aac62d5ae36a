# /// case
# title = "Taylor pruning reads .grad of activations that do not keep it"
# category = "leaf-nonleaf"
# kind = "grad-read-on-nonleaf"
# severity = "warning"
# severity_by_writer = "error"
# names = ["taps", "act", "grad", "g", "h"]
# difficulty = "medium"
# symptom = "all channel scores stay 0, so the pruning mask is arbitrary; plain torch only warns about .grad of a non-leaf"
# symptom_check = "float(ranker.scores[\"conv1\"].abs().sum() + ranker.scores[\"conv2\"].abs().sum()) == 0.0"
# warns = "The .grad attribute of a Tensor that is not a leaf"
# cause = "activations are intermediate results; without retain_grad() their .grad is None after backward and the loop skips them"
# fix = "call retain_grad() on the tapped activations during the forward pass"
# evidence = [{ url = "https://discuss.pytorch.org/t/how-to-define-a-leaf-tensor-in-pytorch-0-4-1/28461" }, { url = "https://pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html" }]
# ///
"""First-order Taylor channel ranking followed by soft pruning and fine-tuning."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TappedNet(nn.Module):
    def __init__(self, width=8, classes=3):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.fc = nn.Linear(width, classes)
        self.taps = {}
        self.register_buffer("mask1", torch.ones(width))
        self.register_buffer("mask2", torch.ones(width))

    def _tap(self, name, h):
#+         if h.requires_grad:
#+             h.retain_grad()
        self.taps[name] = h  #! here
        return h

    def forward(self, x):
        h = self._tap("conv1", F.relu(self.conv1(x)) * self.mask1.view(1, -1, 1, 1))  #! also
        h = F.max_pool2d(h, 2)
        h = self._tap("conv2", F.relu(self.conv2(h)) * self.mask2.view(1, -1, 1, 1))  #! also
        return self.fc(h.mean(dim=(2, 3)))


class TaylorRanker:
    def __init__(self, model):
        self.model = model
        self.scores = {"conv1": torch.zeros(8), "conv2": torch.zeros(8)}

    def accumulate(self):
        for name, act in self.model.taps.items():
            g = act.grad  #! here
            if g is None:
                continue
            self.scores[name] += (act.detach() * g).sum(dim=(0, 2, 3)).abs()

    def prune(self, fraction):
        for name, mask in (("conv1", self.model.mask1), ("conv2", self.model.mask2)):
            k = int(fraction * mask.numel())
            drop = self.scores[name].argsort()[:k]
            mask[drop] = 0.0


def batches(n, size):
    for _ in range(n):
        x = torch.randn(size, 3, 8, 8)
        y = (x.mean(dim=(1, 2, 3)) > 0).long() + (x[:, 0].mean(dim=(1, 2)) > 0.1).long()
        yield x, y


torch.manual_seed(1)
net = TappedNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
ranker = TaylorRanker(net)

for x, y in batches(10, 32):
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    ranker.accumulate()
    opt.step()

ranker.prune(0.25)

for x, y in batches(5, 32):
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()

with torch.no_grad():
    accuracy = sum((net(x).argmax(1) == y).float().mean().item() for x, y in batches(4, 64)) / 4
print(f"kept {int(net.mask1.sum())}/{int(net.mask2.sum())} channels, accuracy {accuracy:.2f}")
