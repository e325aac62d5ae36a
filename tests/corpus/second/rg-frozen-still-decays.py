# /// case
# title = "A layer is frozen mid-training but its zeroed .grad stays: momentum and weight decay keep moving it"
# category = "requires-grad"
# kind = "frozen-parameter-still-updated"
# severity = "warning"
# names = ["enc"]
# difficulty = "hard"
# symptom = "silent: the frozen layer's weights keep shrinking"
# symptom_check = "not torch.equal(at_freeze, enc.weight)"
# cause = "optimizers skip only grad None; with set_to_none=False the frozen parameter has a zero grad, so weight decay/momentum apply"
# fix = "set .grad = None for frozen parameters (or rebuild the optimizer)"
# evidence = [
#     { url = "https://github.com/facebookresearch/fairseq/issues/4702" },
#     { url = "https://github.com/explosion/curated-transformers/pull/69" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(9)
enc, dec = nn.Linear(7, 7), nn.Linear(7, 1)
optimizer = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.05, momentum=0.9, weight_decay=0.1)
x = torch.randn(50, 7)
y = x[:, :1] - 0.5 * x[:, 1:2]


def epoch():
    optimizer.zero_grad(set_to_none=False)  #! also
    pred = dec(torch.relu(enc(x)))
    err = (pred - y).pow(2).mean()
    err.backward()
    optimizer.step()
    return err.item()


for _ in range(5):
    epoch()

# second phase: only the decoder is tuned
for p in enc.parameters():
    p.requires_grad_(False)  #! here
#+     p.grad = None
at_freeze = enc.weight.detach().clone()
for _ in range(5):
    final = epoch()
print("final", final, "encoder moved by", (enc.weight - at_freeze).norm().item())
