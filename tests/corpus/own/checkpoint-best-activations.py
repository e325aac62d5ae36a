# /// case
# category = "leaf"
# kind = "non-leaf-deepcopied"
# severity = "error"
# names = ["best", "summary"]
# ///
#-
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
best, best_loss = None, float("inf")
for epoch in range(3):
    prediction = model(torch.ones(4, 3))
    loss = (prediction - 2).pow(2).mean()
    summary = {"epoch": epoch, "prediction": prediction}  #- here
#+     summary = {"epoch": epoch, "prediction": prediction.detach()}
    if loss.item() < best_loss:
        best_loss = loss.item()
        best = copy.deepcopy(summary)  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
print(best["epoch"], best_loss)
