# /// case
# title = "validate() calls eval() and nobody calls train() again"
# category = "train-eval-mode"
# kind = "training-in-eval-mode"
# severity = "warning"
# names = ["net"]
# difficulty = "medium"
# symptom = "silent: from epoch 2 dropout is off and batch-norm statistics are frozen"
# symptom_check = "modes == [True, False, False]"
# cause = "train() is missing at the start of the epoch"
# fix = "net.train() before the training batches"
# evidence = [
#     { url = "https://github.com/wkentaro/pytorch-fcn/issues/57" },
#     { url = "https://github.com/hendrycks/ethics/issues/5" },
#     { url = "https://github.com/asyml/texar-pytorch/issues/310" },
#     { url = "https://github.com/joeynmt/joeynmt/issues/184" },
# ]
# ///
import torch
from torch import nn


def validate(model, x, y):
    model.eval()  #! also
    with torch.no_grad():
        return nn.functional.cross_entropy(model(x), y).item()


torch.manual_seed(2)
net = nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Dropout(0.3), nn.Linear(20, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
xs, ys = torch.randn(80, 10), torch.randint(0, 2, (80,))
xv, yv = torch.randn(20, 10), torch.randint(0, 2, (20,))
modes = []
for epoch in range(3):
#+     net.train()
    modes.append(net.training)
    for i in range(0, 80, 16):
        opt.zero_grad()
        out = net(xs[i:i + 16])  #! here
        loss = nn.functional.cross_entropy(out, ys[i:i + 16])
        loss.backward()
        opt.step()
    print(epoch, validate(net, xv, yv))
