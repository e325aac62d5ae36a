# /// case
# title = "Misclassification rate added to the loss as if it could be minimised"
# category = "partial-cut"
# kind = "constant-loss-term"
# kinds_also_ok = ["graph-break-non-differentiable", "loss-term-without-gradient"]
# severity = "warning"
# names = ["error_rate", "predicted"]
# symptom = "the error rate has no grad_fn; the weight on it changes no gradient"
# symptom_check = "error_rate.grad_fn is None"
# cause = "argmax and a comparison have no derivative"
# fix = "use a differentiable surrogate"
# evidence = [
#     { url = "https://github.com/Wuziyi616/multi_part_assembly/issues/4", title = "Including a new loss in the computation graph" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
x = torch.randn(128, 10)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))
optim = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def criterion(logits, target):
    predicted = logits.argmax(dim=1)  #- here
    error_rate = (predicted != target).float().mean()  #- here
#+     error_rate = (1 - logits.softmax(dim=1).gather(1, target[:, None])).mean()
    return F.cross_entropy(logits, target) + 2.0 * error_rate, error_rate  #! also


for epoch in range(10):
    for xb, yb in zip(x.split(32), y.split(32)):
        optim.zero_grad()
        loss, error_rate = criterion(net(xb), yb)
        loss.backward()
        optim.step()
    print(epoch, loss.item())
