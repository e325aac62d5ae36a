# /// case
# title = "A gradient-scaling hook on a parameter is registered in every epoch"
# category = "hooks"
# kind = "hook-registered-repeatedly"
# severity = "warning"
# names = ["embed.weight"]
# difficulty = "hard"
# symptom = "silent: after k epochs the gradient is scaled by 0.5**k"
# symptom_check = "abs(factor - 0.5) > 0.1"
# cause = "hooks on leaf tensors stay until removed"
# fix = "register once, before the loop"
# evidence = [
#     { url = "https://github.com/EleutherAI/bergson/pull/55" },
#     { url = "https://github.com/chr5tphr/zennit/issues/125" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(15)
embed, cls = nn.Embedding(12, 6), nn.Linear(6, 2)
opt = torch.optim.SGD([*embed.parameters(), *cls.parameters()], lr=0.1)
ids, lab = torch.randint(0, 12, (10, 4)), torch.randint(0, 2, (10,))
#+ embed.weight.register_hook(lambda g: g * 0.5)
for epoch in range(6):
    embed.weight.register_hook(lambda g: g * 0.5)  #- here
    rows = embed(ids)
    loss = nn.functional.cross_entropy(cls(rows.mean(1)), lab)
    raw = torch.autograd.grad(loss, rows, retain_graph=True)[0]
    opt.zero_grad()
    loss.backward()
    full = torch.zeros_like(embed.weight).index_add_(0, ids.flatten(), raw.flatten(0, 1))
    factor = (embed.weight.grad.norm() / full.norm()).item()
    opt.step()
print(factor)
