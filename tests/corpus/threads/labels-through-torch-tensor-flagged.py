# /// case
# title = "Mean of per-sample losses remade with torch.tensor(..., requires_grad=True)"
# category = "assignment-cut"
# kind = "requires-grad-forced-on-loss"
# kinds_also_ok = ["graph-break-rebuild", "graph-break-new-tensor"]
# severity = "warning"
# names = ["loss", "losses"]
# symptom = "no parameter has a gradient after backward()"
# symptom_check = "all(p.grad is None for p in embed.parameters())"
# cause = "torch.tensor copies values; the flag only hides it"
# fix = "stack the losses and take their mean"
# evidence = [
#     { url = "https://github.com/roman-vygon/triplet_loss_kws/issues/6", title = "Torch autograd expects Variable with requires_grad set to True" },
#     { url = "https://github.com/bermanmaxim/LovaszSoftmax/issues/28", title = "Gradients problem" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(13)
embed = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 4))
opt = torch.optim.Adam(embed.parameters(), lr=1e-3)


def triplet(anchor, positive, negative, margin=0.5):
    losses = []
    for a, p, n in zip(anchor, positive, negative):
        near = (embed(a) - embed(p)).pow(2).sum()
        far = (embed(a) - embed(n)).pow(2).sum()
        losses.append(torch.relu(near - far + margin))
    return torch.tensor(losses, requires_grad=True).mean()  #- here
#+     return torch.stack(losses).mean()


for step in range(5):
    batch = torch.randn(3, 8, 9)
    loss = triplet(*batch)
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    print(step, loss.item())
