# /// case
# title = "The model ends in softmax and the trainer uses cross_entropy"
# category = "helper"
# kind = "double-softmax"
# severity = "warning"
# names = ["softmax", "forward"]
# symptom = "the loss cannot fall below the value at a one-hot input"
# symptom_check = "bool(torch.allclose(out.sum(-1), torch.ones(out.shape[:-1])))"
# cause = "softmax in forward and in the loss"
# fix = "return logits"
# evidence = [
#     { url = "https://github.com/bkitano/llama-from-scratch/issues/5", title = "no need to softmax before cross_entrpoy" },
#     { url = "https://github.com/Lightning-Universe/lightning-bolts/issues/654", title = "Softmax applied twice when computing loss in LogisticRegression" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
CONFIG = {"vocab": 20, "dim": 16, "block": 6}


class SimpleModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config["vocab"], config["dim"])
        self.linear = nn.Sequential(
            nn.Linear(config["dim"], config["dim"]), nn.ReLU(), nn.Linear(config["dim"], config["vocab"])
        )

    def forward(self, idx, targets=None):
        a = self.linear(self.embedding(idx))
        logits = F.softmax(a, dim=-1)  #- here
#+         logits = a
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())  #! here


model = SimpleModel(CONFIG)
opt = torch.optim.Adam(model.parameters())
for _ in range(10):
    ids = torch.randint(0, CONFIG["vocab"], (8, CONFIG["block"] + 1))
    out, loss = model(ids[:, :-1], ids[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
