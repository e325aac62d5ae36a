# /// case
# title = "The best state_dict is kept by reference"
# category = "identity"
# kind = "state-dict-alias"
# kinds_also_ok = ["copy-is-alias"]
# severity = "warning"
# names = ["best_state", "state_dict"]
# symptom = "the best weights are those of the last step"
# symptom_check = 'best_state["0.weight"].data_ptr() == model[0].weight.data_ptr()'
# cause = "state_dict() returns the live tensors"
# fix = "deepcopy"
# evidence = [
#     { url = "https://github.com/pytorch/tutorials/pull/188", title = "Fixed deep copying model.state_dict()" },
#     { url = "https://github.com/WenjieDu/PyPOTS/issues/667", title = "Issue with saving the best model state" },
# ]
# ///
import copy

import torch
from torch import nn

torch.manual_seed(12)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x, y = torch.randn(40, 4), torch.randn(40, 1)
xv, yv = torch.randn(40, 4), torch.randn(40, 1)
best_loss, best_state = float("inf"), None
for epoch in range(25):
    model.train()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()  #! also
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(xv), yv).item()
    if val < best_loss:
        best_loss = val
        best_state = model.state_dict()  #- here
#+         best_state = copy.deepcopy(model.state_dict())
model.load_state_dict(best_state)  #! also
print(best_loss, copy.__name__)
