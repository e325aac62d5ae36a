# /// case
# title = "A group of parameters is collected and not appended"
# category = "optimizer-time"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["crf", "groups"]
# symptom = "the tag head never moves"
# symptom_check = "torch.equal(tagger.tags.weight, initial)"
# cause = "the third group is built and dropped"
# fix = "append it"
# evidence = [
#     { url = "https://github.com/zjunlp/HVPNeT/issues/5", title = "Not putting parameters into optimizer but still trainable" },
#     { url = "https://github.com/ohhhyeahhh/SiamCAR/issues/18", title = "about trainable_params" },
# ]
# ///
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.context = nn.GRU(8, 8, batch_first=True)
        self.tags = nn.Linear(8, 5)

    def forward(self, ids):
        return self.tags(self.context(self.words(ids))[0])


def build_optimizer(model):
    groups = []
    group = {"lr": 1e-3, "params": [p for n, p in model.named_parameters() if n.startswith("words")]}
    groups.append(group)
    group = {"lr": 5e-3, "params": [p for n, p in model.named_parameters() if n.startswith("context")]}
    groups.append(group)
    group = {"lr": 5e-2, "params": [p for n, p in model.named_parameters() if n.startswith("tags")]}  #! also
#+     groups.append(group)
    return torch.optim.AdamW(groups)  #! here


torch.manual_seed(6)
tagger = Tagger()
optimizer = build_optimizer(tagger)  #! also
initial = tagger.tags.weight.detach().clone()
for _ in range(4):
    ids, gold = torch.randint(0, 30, (4, 6)), torch.randint(0, 5, (4, 6))
    optimizer.zero_grad()
    nn.functional.cross_entropy(tagger(ids).flatten(0, 1), gold.flatten()).backward()
    optimizer.step()
