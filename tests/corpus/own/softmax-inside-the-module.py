# /// case
# category = "training"
# kind = "double-softmax"
# severity = "warning"
# names = ["softmax", "Softmax", "cross_entropy", "logits"]
# ///
#-
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = [m for i, o in zip(sizes, sizes[1:]) for m in (nn.Linear(i, o), nn.ReLU())]
        self.body = nn.Sequential(*layers[:-1])
        self.activation = nn.Softmax(dim=-1)  #! also

    def forward(self, x):
        return self.activation(self.body(x))  #- here
#+         return self.body(x)


def step(model, criterion, opt, x, y):
    opt.zero_grad(set_to_none=True)
    loss = criterion(model(x), y)  #! also
    loss.backward()
    opt.step()
    return loss.item()


torch.manual_seed(0)
model = Classifier([5, 16, 3])
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(5):
    x = torch.randn(16, 5)
    step(model, nn.CrossEntropyLoss(), opt, x, x[:, :3].argmax(1))
