# /// case
# title = "Consistency loss computed wholly under no_grad"
# category = "partial-cut"
# kind = "graph-break-no-grad"
# kinds_also_ok = ["constant-loss-term", "loss-term-without-gradient"]
# severity = "warning"
# names = ["consistency"]
# symptom = "the consistency term carries no gradient, so unlabelled data teach nothing"
# symptom_check = "consistency.grad_fn is None"
# cause = "the no_grad block spans the student's view too"
# fix = "only the target view belongs under no_grad"
# evidence = [
#     { url = "https://github.com/YU1ut/MixMatch-pytorch/pull/23", title = "fix parameter assignment bug" },
#     { url = "https://github.com/lhoyer/DAFormer/issues/59", title = "Questions about whether the teacher network is trained or not" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
opt = optim.Adam(net.parameters(), lr=1e-3)
labelled = torch.randn(32, 16)
targets = torch.randint(0, 4, (32,))
unlabelled = torch.randn(96, 16)

net.train()
for step in range(15):
    opt.zero_grad()
    supervised = F.cross_entropy(net(labelled), targets)
    with torch.no_grad():  #! here
        target = net(unlabelled + 0.1 * torch.randn_like(unlabelled)).softmax(1)
        student = net(unlabelled + 0.1 * torch.randn_like(unlabelled)).softmax(1)  #- here
        consistency = F.mse_loss(student, target)  #- also
#+     student = net(unlabelled + 0.1 * torch.randn_like(unlabelled)).softmax(1)
#+     consistency = F.mse_loss(student, target)
    weight = min(1.0, step / 10)
    loss = supervised + weight * consistency  #! also
    loss.backward()
    opt.step()
print(supervised.item(), consistency.item())
