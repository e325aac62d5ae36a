# /// case
# title = "After every step the padding row of an embedding is set to zero, outside no_grad"
# category = "in-place"
# kind = "in-place-on-leaf"
# kinds_also_ok = ["leaf-modified-in-place", "missing-no-grad"]
# severity = "error"
# names = ["weight", "no_grad", "PAD"]
# symptom = "the assignment raises"
# raises = "RuntimeError"
# raises_message = "a view of a leaf Variable that requires grad is being used in an in-place operation"
# cause = "Writing into a parameter that requires grad is recorded by autograd, which is not allowed of a leaf."
# fix = "with torch.no_grad()"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class SessionModel(nn.Module):
    """Next item of a shopping session from the mean of the items before."""

    def __init__(self, items, width=12):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.mix = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    def forward(self, session):
        present = (session != PAD).float().unsqueeze(-1)
        mean = (self.items(session) * present).sum(1) / present.sum(1).clamp(min=1)
        return self.mix(mean) @ self.items.weight.T

    def reset_padding(self):
        self.items.weight[PAD] = 0.0  #- here
#+         with torch.no_grad():
#+             self.items.weight[PAD] = 0.0


def sessions(n, items, longest=7):
    start = torch.randint(1, items - longest - 1, (n, 1))
    walk = start + torch.arange(longest + 1)
    length = torch.randint(2, longest + 1, (n, 1))
    history = torch.where(torch.arange(longest) < length, walk[:, :-1], PAD)
    return history, walk.gather(1, length).squeeze(1)


torch.manual_seed(10)
model = SessionModel(40)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(15):
    history, following = sessions(32, 40)
    loss = F.cross_entropy(model(history), following)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.reset_padding()  #! also
    if step % 5 == 0:
        print(step, loss.item())
