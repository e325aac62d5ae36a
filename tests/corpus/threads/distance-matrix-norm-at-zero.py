# /// case
# title = "sqrt of squared distances on the diagonal gives NaN behind a mask"
# category = "uncovered"
# kind = "nonfinite-gradient"
# kinds_also_ok = ["nonfinite-gradient-masked-branch"]
# severity = "warning"
# names = ["sqrt", "distance"]
# symptom = "the embedding's weights become NaN"
# symptom_check = "bool(torch.isnan(embed.weight).any())"
# cause = "the derivative of sqrt at 0 is infinite, times the mask's zero"
# fix = "add an eps under the root"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/2421", title = "Gradient of zero norm is nan" },
#     { url = "https://github.com/pytorch/pytorch/issues/187297", title = "torch.where backward propagates NaN gradient from inactive sqrt branch" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(4)
embed = nn.Linear(7, 3)
opt = torch.optim.SGD(embed.parameters(), lr=0.01)


def pairwise(z):
    squared = (z[:, None] - z[None]).pow(2).sum(-1)
    distance = squared.sqrt()  #- here
#+     distance = (squared + 1e-9).sqrt()
    off = ~torch.eye(len(z), dtype=torch.bool)
    return torch.where(off, distance, torch.zeros_like(distance))  #! also


for step in range(5):
    x = torch.randn(10, 7)
    labels = torch.randint(0, 2, (10,))
    same = (labels[:, None] == labels[None]).float()
    d = pairwise(embed(x))
    loss = (same * d + (1 - same) * torch.relu(1 - d)).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    print(step, loss.item())
