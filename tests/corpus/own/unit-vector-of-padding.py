# /// case
# category = "numeric"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(20, 5, padding_idx=0)
mix = nn.Linear(5, 4)
opt = torch.optim.SGD([*table.parameters(), *mix.parameters()], lr=0.1)
tokens = torch.tensor([[3, 4, 0], [7, 8, 9], [1, 0, 0]])
for _ in range(3):
    vectors = table(tokens)
    unit = vectors / vectors.norm(dim=-1, keepdim=True)  #- here
#+     unit = vectors / vectors.square().sum(-1, keepdim=True).add(1e-6).sqrt()
    loss = mix(unit.sum(1)).logsumexp(-1).mean()  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
