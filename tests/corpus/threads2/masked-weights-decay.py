# /// case
# title = "Weights whose gradient is set to zero still decay"
# category = "flags"
# kind = "frozen-parameter-still-updated"
# kinds_also_ok = ["frozen-with-stale-gradient", "masked-gradient-still-decays"]
# severity = "warning"
# names = ["mask", "grad", "weight_decay"]
# symptom = "weights outside the mask move"
# symptom_check = "drift > 0"
# cause = "weight decay acts on every weight that has a gradient, zero or not"
# fix = "no weight decay, or restore the masked weights after each step"
# evidence = [
#     { url = "https://github.com/OPTML-Group/Unlearn-Saliency/issues/32", title = "Weight decay changes the masked parameters." },
# ]
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def saliency_mask(model, forget, ratio=0.3):
    model.zero_grad()
    x, y = forget
    (-F.cross_entropy(model(x), y)).backward()
    scores = torch.cat([p.grad.abs().flatten() for p in model.parameters()])
    bound = scores.kthvalue(int((1 - ratio) * scores.numel())).values
    mask = {n: (p.grad.abs() > bound).float() for n, p in model.named_parameters()}
    model.zero_grad()
    return mask


def random_label_unlearn(model, forget, retain, mask, args):
    optimizer = torch.optim.SGD(model.parameters(), args["lr"], momentum=0.9, weight_decay=args["weight_decay"])  #- here
#+     optimizer = torch.optim.SGD(model.parameters(), args["lr"], momentum=0.9, weight_decay=0.0)
    for epoch in range(args["epochs"]):
        for x, y in (forget, retain):
            target = torch.randint(0, 4, y.shape) if x is forget[0] else y
            loss = F.cross_entropy(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            for name, param in model.named_parameters():
                param.grad *= mask[name]  #! here
            optimizer.step()  #! also


torch.manual_seed(41)
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 4))
forget = torch.randn(12, 10), torch.randint(0, 4, (12,))
retain = torch.randn(30, 10), torch.randint(0, 4, (30,))
start = copy.deepcopy(model.state_dict())
mask = saliency_mask(model, forget)
random_label_unlearn(model, forget, retain, mask, {"lr": 0.1, "weight_decay": 5e-4, "epochs": 5})
drift = max(((p.detach() - start[n]) * (1 - mask[n])).abs().max().item() for n, p in model.named_parameters())
print(drift)
