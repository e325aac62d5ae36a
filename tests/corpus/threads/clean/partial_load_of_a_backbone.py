import torch
from torch import nn

torch.manual_seed(52)


def build(classes):
    return nn.ModuleDict({"body": nn.Linear(6, 8), "head": nn.Linear(8, classes)})


old = build(10)
state = {k: v for k, v in old.state_dict().items() if not k.startswith("head")}
model = build(3)
missing, unexpected = model.load_state_dict(state, strict=False)
assert not unexpected and all(k.startswith("head") for k in missing)
model["body"].requires_grad_(False)
opt = torch.optim.SGD(model["head"].parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    opt.zero_grad()
    nn.functional.cross_entropy(model["head"](model["body"](x).relu()), y).backward()
    opt.step()
