# /// case
# title = "log_softmax over the batch dimension"
# category = "loss-wiring"
# kind = "softmax-wrong-dim"
# severity = "warning"
# names = ["logp"]
# difficulty = "medium"
# symptom = "silent: rows are not distributions"
# symptom_check = "bool((logp.exp().sum(1) - 1).abs().max() > 0.05)"
# cause = "dim=0 normalises over samples"
# fix = "dim=-1"
# evidence = [
#     { url = "https://github.com/ctallec/world-models/issues/10" },
#     { url = "https://github.com/batra-mlp-lab/visdial-challenge-starter-pytorch/issues/1" },
#     { url = "https://github.com/DeepReinforcementLearning/DeepReinforcementLearningInAction/issues/32" },
#     { url = "https://github.com/Lackel/DPN/issues/1" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
clf = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 5))
opt = torch.optim.SGD(clf.parameters(), lr=0.1, momentum=0.9)
emails = torch.randn(40, 12)
folder = emails[:, :5].argmax(1)
for _ in range(15):
    logp = F.log_softmax(clf(emails), dim=0)  #- here
#+     logp = F.log_softmax(clf(emails), dim=-1)
    loss = F.nll_loss(logp, folder)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
