# /// case
# title = "The skipped input is the tensor that is added to"
# category = "in-place"
# kind = "in-place-modification"
# kinds_also_ok = ["alias"]
# severity = "error"
# names = ["out", "x"]
# symptom = "backward needs the value that += overwrote"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "out = x is an alias"
# fix = "clone it, or add out of place"
# evidence = [
#     { url = "https://github.com/Jee-King/TSAN/issues/3", title = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation" },
# ]
# ///
import torch
import torch.nn as nn


class Attention(nn.Module):
    """Channel attention over frames."""

    def __init__(self, c):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(c, c // 2), nn.Tanh(), nn.Linear(c // 2, c), nn.Sigmoid())

    def forward(self, x):
        return x * self.score(x.mean(1, keepdim=True))


class TSAN(nn.Module):
    def __init__(self, c=12, frames=5, scale=3):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(c, c), nn.Tanh())
        self.body = nn.ModuleList(Attention(c) for _ in range(2))
        self.tail = nn.Linear(c * frames, c * scale)

    def forward(self, frames):
        x = self.head(frames)
        out = x  #- here
#+         out = x.clone()
        for block in self.body:
            out += block(x)  #- here
#+             out = out + block(x)
        return self.tail(out.flatten(1))


class Trainer:
    def __init__(self, model):
        self.model, self.loss = model, nn.L1Loss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def train(self, loader):
        for lr, hr in loader:
            self.optimizer.zero_grad()
            loss = self.loss(self.model(lr), hr)
            loss.backward()  #! also
            self.optimizer.step()
        return loss.item()


torch.manual_seed(36)
loader = [(torch.randn(4, 5, 12), torch.randn(4, 36)) for _ in range(6)]
print(Trainer(TSAN()).train(loader))
