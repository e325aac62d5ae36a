# /// case
# title = "Early stopping decides by a validation loss with dropout on"
# category = "evaluation"
# kind = "evaluating-in-train-mode"
# severity = "warning"
# names = ["val_loss", "net"]
# symptom = "two evaluations of the same weights differ"
# symptom_check = "val_loss(net, held) != val_loss(net, held)"
# cause = "no eval() before validating"
# fix = "eval() in val_loss, train() after"
# evidence = [
#     { url = "https://github.com/udacity/deep-learning-v2-pytorch/issues/3", title = 'Issue about "model.train()" and "model.eval()"??' },
#     { url = "https://github.com/HazyResearch/metal/issues/70", title = "model.train() vs. eval()" },
# ]
# ///
import torch
from torch import nn


def val_loss(net, held):
    x, y = held
    out = net(x)  #- here
#+     net.eval()
#+     with torch.no_grad():
#+         out = net(x)
#+     net.train()
    return float(nn.functional.mse_loss(out, y).detach())


torch.manual_seed(15)
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(96, 4)
y = x.sum(1, keepdim=True)
held = (x[64:], y[64:])
best, patience = float("inf"), 0
for epoch in range(15):
    for xb, yb in zip(x[:64].split(16), y[:64].split(16)):
        adam.zero_grad()
        nn.functional.mse_loss(net(xb), yb).backward()
        adam.step()
    now = val_loss(net, held)  #! also
    best, patience = (now, 0) if now < best else (best, patience + 1)
    if patience > 4:
        break
print(best)
