# /// case
# title = "strict=False with prefixed keys loads nothing"
# category = "uncovered"
# kind = "load-state-dict-nothing-loaded"
# severity = "warning"
# names = ["load_state_dict", "strict"]
# symptom = "the model still has its random weights"
# symptom_check = "not torch.equal(model[0].weight, wrapped.model[0].weight)"
# cause = "every key has the prefix `model.`"
# fix = "strip the prefix"
# evidence = [
#     { url = "https://github.com/pytorch/examples/issues/1029", title = "nn.module load_state_dict strict=False can silently load a corrupted model" },
# ]
# ///
import io

import torch
from torch import nn


def net():
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))


class Lit(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = net()


torch.manual_seed(1)
wrapped, blob = Lit(), io.BytesIO()
torch.save({"state_dict": wrapped.state_dict()}, blob)
blob.seek(0)
checkpoint = torch.load(blob)["state_dict"]
model = net()
model.load_state_dict(checkpoint, strict=False)  #- here
#+ model.load_state_dict({k.removeprefix("model."): v for k, v in checkpoint.items()})
opt = torch.optim.SGD(model[2].parameters(), lr=0.1)
model[0].requires_grad_(False)
for _ in range(3):
    x, y = torch.randn(16, 5), torch.randint(0, 2, (16,))
    opt.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
