# /// case
# category = "training"
# kind = "double-softmax"
# severity = "warning"
# names = ["softmax", "probabilities"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4))

    def forward(self, x):
        logits = self.layers(x)
        return torch.softmax(logits, dim=-1)  #- here
#+         return logits


model = Classifier()
criterion = nn.CrossEntropyLoss()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    x, y = torch.randn(20, 6), torch.randint(0, 4, (20,))
    loss = criterion(model(x), y)  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
