# /// case
# title = "The distillation term compares the teacher with the teacher"
# category = "graph-break"
# kind = "constant-loss-term"
# kinds_also_ok = ["wrong-operand"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["large_logits", "soft_prob", "soft_loss"]
# symptom = "the distillation term has no gradient and is constant"
# symptom_check = "not soft_loss.requires_grad"
# cause = "a copied line uses large_logits where output is meant"
# fix = "use output in the student's term"
# evidence = [
#     { url = "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/66", title = "Small error in distillation code" },
# ]
# ///
import copy
from types import SimpleNamespace

import torch
from torch import nn

conf = SimpleNamespace(temperature=5.0, soft_weight=100.0, label_weight=0.5, lr=2.5e-3, steps=6)


def mlp(width):
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 4))


def train_teacher(x, y):
    large = mlp(64)
    optimizer = torch.optim.Adam(large.parameters(), lr=1e-2)
    for _ in range(20):
        optimizer.zero_grad()
        nn.functional.cross_entropy(large(x), y).backward()
        optimizer.step()
    return copy.deepcopy(large).eval().requires_grad_(False)


torch.manual_seed(41)
x = torch.randn(96, 10)
y = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()
large, small = train_teacher(x, y), mlp(8)
optimizer = torch.optim.Adam(small.parameters(), lr=conf.lr)
kl_div = nn.KLDivLoss(reduction="batchmean")
cross_entropy = nn.CrossEntropyLoss()

for step in range(conf.steps):
    with torch.no_grad():
        large_logits = large(x)
    output = small(x)
    # softened probabilities of both models
    soft_targets = nn.functional.log_softmax(large_logits / conf.temperature, dim=-1)
    soft_prob = nn.functional.log_softmax(large_logits / conf.temperature, dim=-1)  #- here
#+     soft_prob = nn.functional.log_softmax(output / conf.temperature, dim=-1)
    soft_loss = kl_div(soft_prob, soft_targets.exp())  #! also
    label_loss = cross_entropy(output, y)
    loss = conf.soft_weight * soft_loss + conf.label_weight * label_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, soft_loss.item(), label_loss.item())
