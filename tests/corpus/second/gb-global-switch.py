# /// case
# title = "Validation switches gradients off globally and never on again"
# category = "graph-break"
# kind = "grad-mode-left-off"
# severity = "error"
# names = ["evaluate"]
# difficulty = "medium"
# symptom = "RuntimeError in the second epoch: element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "element 0 of tensors does not require grad"
# cause = "torch.set_grad_enabled(False) as a plain call is global and persists"
# fix = "with torch.no_grad():"
# evidence = [
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/19517" },
#     { url = "https://github.com/pykeen/pykeen/issues/571" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(31)


def evaluate(net, xs, ys):
    torch.set_grad_enabled(False)  #- here
    net.eval()
    acc = (net(xs).argmax(1) == ys).float().mean().item()  #-
#+     with torch.no_grad():
#+         acc = (net(xs).argmax(1) == ys).float().mean().item()
    net.train()
    return acc


net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
xs = torch.randn(60, 5)
ys = (xs[:, 0] > 0).long()
for epoch in range(3):
    for k in range(0, 60, 20):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(xs[k:k + 20]), ys[k:k + 20])  #! also
        loss.backward()  #! also
        opt.step()
    print(epoch, evaluate(net, xs, ys))
