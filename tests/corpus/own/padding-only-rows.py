# /// case
# category = "numeric"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["scores", "attention"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
embed = nn.Embedding(10, 6)
score = nn.Linear(6, 1)
opt = torch.optim.Adam([*embed.parameters(), *score.parameters()], lr=1e-2)
tokens = torch.tensor([[4, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
for _ in range(3):
    h = embed(tokens)
    scores = score(h).squeeze(-1).masked_fill(tokens == 0, float("-inf"))  #- here
#+     scores = score(h).squeeze(-1).masked_fill(tokens == 0, -1e9)
    attention = scores.softmax(-1)  #! also
    pooled = (attention.unsqueeze(-1) * h).sum(1)
    loss = pooled.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
