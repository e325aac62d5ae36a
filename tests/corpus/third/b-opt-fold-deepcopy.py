# /// case
# title = "Fold model is a deepcopy, optimizer was built on the original"
# category = "optimizer-wiring"
# kind = "optimizer-holds-other-model"
# severity = "warning"
# severity_by_writer = "error"
# names = ["net", "opt", "base"]
# difficulty = "medium"
# symptom = "Every fold reports the untrained error; nothing is updated, no message."
# symptom_check = "all(torch.equal(a, b) for a, b in zip(results[0][0].parameters(), base.parameters()))"
# cause = "The optimizer is created from base.parameters(); the loop trains a deepcopy of base, whose parameters are new tensors. base gets no gradient, so opt.step() does nothing."
# fix = "Create the optimizer from net.parameters() in each fold."
# evidence = [{ url = "https://github.com/skorch-dev/skorch/issues/317" }]
# ///
import copy
import torch
from torch import nn, optim

torch.manual_seed(11)
X = torch.randn(120, 5)
y = (X @ torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0]) + 0.1 * torch.randn(120)).unsqueeze(1)

base = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = optim.Adam(base.parameters(), lr=0.02)  #- here
mse = nn.MSELoss()


def run_fold(k, folds=4):
    val = torch.arange(len(X)) % folds == k
    net = copy.deepcopy(base)  #! here
#+     opt = optim.Adam(net.parameters(), lr=0.02)
    for _ in range(50):
        opt.zero_grad()  #! also
        mse(net(X[~val]), y[~val]).backward()
        opt.step()  #! also
    with torch.no_grad():
        return net, mse(net(X[val]), y[val]).item()


results = [run_fold(k) for k in range(4)]
scores = [s for _, s in results]
print("cv error", sum(scores) / len(scores))
