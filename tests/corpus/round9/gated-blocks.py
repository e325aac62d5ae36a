# /// case
# title = "The penalties that forward collects are never cleared"
# category = "retention"
# kind = "losses-list-not-cleared"
# kinds_also_ok = ["graph-kept-across-steps", "backward-twice", "auxiliary-losses-accumulate"]
# severity = "error"
# names = ["penalties", "regularisation", "encode"]
# symptom = "the second step raises: the first step's graph is backpropagated again"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "The list keeps the penalties of earlier steps, whose graphs have been freed."
# fix = "empty the list at the start of every forward pass"
# ///
import torch
from torch import nn
from torch.nn import functional as F


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        h = self.norm(x)
        gate = torch.sigmoid(self.gate(h))
        return x + gate * F.gelu(self.value(h)), gate


class GatedClassifier(nn.Module):
    def __init__(self, features, width, depth, classes):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.blocks = nn.ModuleList(GatedBlock(width) for _ in range(depth))
        self.head = nn.Linear(width, classes)
        self.penalties = []  #! also

    def encode(self, x):  #! here
#+         self.penalties = []
        x = self.stem(x)  #! here
        for block in self.blocks:  #! also
            x, gate = block(x)
            self.penalties.append(gate.square().mean())  #! here
        return x

    def forward(self, x):
        return self.head(self.encode(x))

    def regularisation(self):
        return torch.stack(self.penalties).mean()  #! here


def fit(model, x, y, steps, strength=0.1, lr=2e-3):
    optimizer = torch.optim.NAdam(model.parameters(), lr=lr)
    for step in range(steps):
        rows = torch.randint(0, len(x), (32,))
        logits = model(x[rows])  #! here
        loss = F.cross_entropy(logits, y[rows]) + strength * model.regularisation()  #! also
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()  #! also
        print(step, round(loss.item(), 4))
    return model


torch.manual_seed(17)
features = torch.randn(200, 12)
target = features[:, :3].argmax(1)
model = fit(GatedClassifier(12, 24, 3, 3), features, target, steps=12)
