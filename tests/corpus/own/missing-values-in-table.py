# /// case
# category = "numeric"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["table", "rows"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
table = torch.tensor([[1.0, 2.0], [0.5, float("nan")], [3.0, 1.0], [2.0, 2.0]])  #- here
#+ table = torch.tensor([[1.0, 2.0], [0.5, 0.0], [3.0, 1.0], [2.0, 2.0]])
price = torch.tensor([3.0, 1.0, 4.0, 4.0])
model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    loss = (model(table).squeeze(1) - price).abs().mean()  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(epoch, loss.item())
