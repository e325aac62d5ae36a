# /// case
# category = "mode"
# kind = "training-in-eval-mode"
# severity = "warning"
# names = ["model"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)


def validate():
    model.eval()  #! also
    with torch.no_grad():
        return model(torch.randn(10, 6)).argmax(1).float().mean().item()


model.train()
for epoch in range(3):
#+     model.train()
    for _ in range(2):
        loss = nn.functional.cross_entropy(model(torch.randn(12, 6)), torch.randint(0, 2, (12,)))  #! here
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, validate())
