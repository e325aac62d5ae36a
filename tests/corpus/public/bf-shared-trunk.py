# /// case
# title = "Two losses share a trunk and each calls backward()"
# category = "backward-flags"
# kind = "second-backward-freed-graph"
# severity = "error"
# names = ["feat"]
# difficulty = "easy"
# symptom = "RuntimeError: Trying to backward through the graph a second time"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "the first backward frees the saved tensors of the shared trunk"
# fix = "add the losses and call backward once (or retain_graph=True on the first)"
# evidence = [
#     { url = "https://discuss.pytorch.org/t/can-not-create-a-new-calculation-graph-after-the-backward-propagation/45026" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
trunk = nn.Sequential(nn.Linear(7, 14), nn.ReLU())
kind_head, size_head = nn.Linear(14, 3), nn.Linear(14, 1)
every = nn.ModuleList([trunk, kind_head, size_head])
opt = torch.optim.Adam(every.parameters(), lr=1e-2)
x, kind, size = torch.randn(18, 7), torch.randint(0, 3, (18,)), torch.rand(18, 1)

for _ in range(3):
    opt.zero_grad()
    feat = trunk(x)
    l_kind = F.cross_entropy(kind_head(feat), kind)
    l_size = F.mse_loss(size_head(feat), size)
    l_kind.backward()  #- also
    l_size.backward()  #- here
#+     (l_kind + l_size).backward()
    opt.step()
print(l_kind.item(), l_size.item())
