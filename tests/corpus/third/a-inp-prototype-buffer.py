# /// case
# title = "Prototype buffer is overwritten in the forward pass before backward has run"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["protos", "prototypes", "update_prototypes"]
# difficulty = "hard"
# symptom = "RuntimeError in backward: a variable needed for gradient computation has been modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "the matrix product saved the buffer for the gradient of the features; the in-place moving average changes it before backward"
# fix = "update the prototypes after the optimizer step"
# evidence = [{ url = "https://github.com/imatif17/Prototype-Mean-Teacher/issues/14" }, { url = "https://github.com/pytorch/pytorch/issues/39141" }]
# ///
"""Prototype classifier: class centres are moving averages of normalised features."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ProtoNet(nn.Module):
    def __init__(self, features=10, dim=12, classes=4, momentum=0.9):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, dim))
        self.register_buffer("protos", F.normalize(torch.randn(classes, dim), dim=1))
        self.momentum = momentum

    @torch.no_grad()
    def update_prototypes(self, z, y):
        for c in y.unique():
            mean = z[y == c].mean(dim=0)
            self.protos[c] = F.normalize(self.momentum * self.protos[c] + (1 - self.momentum) * mean, dim=0)  #! here

    def forward(self, x, y=None):
        z = F.normalize(self.encoder(x), dim=1)
        logits = z @ self.protos.t() / 0.1  #! here
        if y is not None:  #- also
            self.update_prototypes(z, y)  #- here
        return logits, z


torch.manual_seed(0)
centres = torch.randn(4, 10) * 1.5
net = ProtoNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(30):
    y = torch.randint(0, 4, (48,))
    x = centres[y] + torch.randn(48, 10)
    logits, z = net(x, y)
    loss = F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
#+     net.update_prototypes(z, y)
print(loss.item())
