# /// case
# category = "graph"
# kind = "graph-carried-across-steps"
# severity = "error"
# names = ["h"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
text = torch.randint(0, 20, (1, 41))
embed, cell, head = nn.Embedding(20, 16), nn.GRUCell(16, 16), nn.Linear(16, 20)
opt = torch.optim.Adam([*embed.parameters(), *cell.parameters(), *head.parameters()], lr=1e-2)
states = [torch.zeros(1, 16)]

for chunk in range(0, 40, 8):
    loss = torch.tensor(0.0)
    for t in range(chunk, chunk + 8):
        h = cell(embed(text[:, t]), states[-1])  #- here
#+         prev = states[-1].detach() if t == chunk else states[-1]
#+         h = cell(embed(text[:, t]), prev)
        states.append(h)  #! also
        loss = loss + nn.functional.cross_entropy(head(h), text[:, t + 1])
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    print(chunk, loss.item() / 8)
