# /// case
# category = "leaf"
# kind = "flag-change-on-non-leaf"
# severity = "error"
# names = ["state", "hidden"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
cell = nn.GRUCell(3, 5)
readout = nn.Linear(5, 1)
state = torch.zeros(2, 5)
for t, x in enumerate(torch.randn(4, 2, 3)):
    state = cell(x, state)
    if t == 1:
        state.requires_grad_(False)  #- here
#+         state = state.detach()
loss = readout(state).mean()
loss.backward()
print(loss.item())
