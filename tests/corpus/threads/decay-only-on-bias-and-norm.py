# /// case
# title = "The filter of the decay groups is inverted: only biases and norms decay"
# category = "uncovered"
# kind = "weight-decay-groups"
# kinds_also_ok = ["weight-decay-on-norms"]
# severity = "warning"
# names = ["no_decay", "weight_decay"]
# symptom = "the norm's weights decay and the matrices do not"
# symptom_check = 'any(p is net[1].weight for g in optimizer.param_groups if g["weight_decay"] > 0 for p in g["params"])'
# cause = "`any` instead of `not any` in the first group"
# fix = "swap the conditions"
# evidence = [
#     { url = "https://github.com/facebookresearch/BalancingGroups/issues/6", title = "Weight decay for BERT models" },
#     { url = "https://github.com/huggingface/transformers/issues/4360", title = "LayerNorm not excluded from weight decay in TF" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Sequential(nn.Linear(10, 20), nn.LayerNorm(20), nn.GELU(), nn.Linear(20, 3))
no_decay = ["bias", "1.weight"]


def grouped(model, decay):
    named = list(model.named_parameters())
    return [
        {"params": [p for n, p in named if any(nd in n for nd in no_decay)], "weight_decay": decay},  #- here
        {"params": [p for n, p in named if not any(nd in n for nd in no_decay)], "weight_decay": 0.0},  #- also
#+         {"params": [p for n, p in named if not any(nd in n for nd in no_decay)], "weight_decay": decay},
#+         {"params": [p for n, p in named if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]


optimizer = torch.optim.AdamW(grouped(net, 0.1), lr=1e-2)  #! also
for _ in range(20):
    x, y = torch.randn(32, 10), torch.randint(0, 3, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
print(net[1].weight.mean())
