# /// case
# category = "gradient"
# kind = "gradient-never-arrives"
# severity = "warning"
# names = ["aux", "auxiliary"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
trunk, main_head, auxiliary = nn.Linear(5, 8), nn.Linear(8, 3), nn.Linear(8, 2)
every = [*trunk.parameters(), *main_head.parameters(), *auxiliary.parameters()]
opt = torch.optim.SGD(every, lr=0.1)
criterion = nn.CrossEntropyLoss()
for step in range(3):
    x, y, side = torch.randn(12, 5), torch.randint(0, 3, (12,)), torch.randint(0, 2, (12,))
    h = trunk(x).relu()
    aux = auxiliary(h)  #! here
    aux = main_head(h)  #- also
    loss = criterion(aux, y) + 0.3 * criterion(main_head(h)[:, :2], side)  #-
#+     loss = criterion(main_head(h), y) + 0.3 * criterion(aux, side)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
