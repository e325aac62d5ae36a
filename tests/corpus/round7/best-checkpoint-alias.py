# /// case
# title = "The best state is kept as a reference to the live parameters"
# category = "in-place"
# kind = "state-dict-alias"
# kinds_also_ok = ["checkpoint-aliases-parameters", "in-place-alias"]
# severity = "warning"
# names = ["best_state", "state_dict"]
# symptom = "restoring the best state does nothing, it has followed the training"
# symptom_check = 'best_state["0.weight"].data_ptr() == model[0].weight.data_ptr()'
# cause = "state_dict gives references to the parameters' memory"
# fix = "deepcopy"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(49)
x = torch.randn(80, 6)
y = (x[:, :2].prod(1, keepdim=True) > 0).float()
train, valid = slice(0, 50), slice(50, 80)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
patience, best_loss, best_state, waited = 6, float("inf"), None, 0


def validate():
    model.eval()
    with torch.no_grad():
        return F.binary_cross_entropy_with_logits(model(x[valid]), y[valid]).item()


for epoch in range(30):
    model.train()
    optimizer.zero_grad()
    loss = F.binary_cross_entropy_with_logits(model(x[train]), y[train])
    loss.backward()
    optimizer.step()
    current = validate()
    if current < best_loss:
        best_loss, waited = current, 0
        best_state = model.state_dict()  #- here
#+         best_state = copy.deepcopy(model.state_dict())
    else:
        waited += 1
        if waited >= patience:
            break

model.load_state_dict(best_state)  #! also
restored = validate()
print(epoch, best_loss, restored)
