# /// case
# category = "numeric"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["angle", "cosine"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
turn = nn.Linear(3, 3, bias=False)
with torch.no_grad():
    turn.weight.copy_(torch.eye(3))
opt = torch.optim.Adam(turn.parameters(), lr=1e-2)
axis = torch.tensor([0.0, 0.0, 1.0])
for _ in range(3):
    cosine = torch.nn.functional.cosine_similarity(turn(axis), axis, dim=0).clamp(-1, 1)
    angle = torch.acos(cosine)  #- here
#+     angle = torch.acos(cosine * (1 - 1e-6))
    opt.zero_grad()
    angle.backward()
    opt.step()
    print(angle.item())
