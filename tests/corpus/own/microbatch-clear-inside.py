# /// case
# category = "gradient"
# kind = "zero-grad-inside-accumulation"
# severity = "warning"
# names = ["optimizer"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
lm = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(8 * 6, 20))
optimizer = torch.optim.AdamW(lm.parameters(), lr=1e-3)
accumulate = 4
tokens = torch.randint(0, 20, (16, 3, 6))
targets = torch.randint(0, 20, (16, 3))
for i, (xb, yb) in enumerate(zip(tokens, targets)):
    optimizer.zero_grad()  #- here
#+     if i % accumulate == 0:
#+         optimizer.zero_grad()
    loss = nn.functional.cross_entropy(lm(xb), yb) / accumulate
    loss.backward()
    if (i + 1) % accumulate == 0:
        optimizer.step()
print(loss.item())
