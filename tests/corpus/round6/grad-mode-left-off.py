# /// case
# title = "Gradients stay off after the first evaluation"
# category = "flags"
# kind = "grad-mode-left-off"
# kinds_also_ok = ["root-without-grad", "global-grad-mode"]
# severity = "error"
# names = ["set_grad_enabled"]
# symptom = "backward of the second epoch raises"
# raises = "RuntimeError"
# raises_message = "does not require grad"
# cause = "set_grad_enabled(False) is never undone"
# fix = "set it back, or use no_grad as a context"
# ///
import torch
import torch.nn as nn


def accuracy(model, x, y):
    model.eval()
    torch.set_grad_enabled(False)  #! here
    hits = (model(x).argmax(1) == y).float().mean().item()
#+     torch.set_grad_enabled(True)
    model.train()  #! also
    return hits


def train_epoch(model, optimizer, x, y, batch=25):
    total = 0.0
    for rows in torch.randperm(len(x)).split(batch):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()  #! also
        optimizer.step()
        total += loss.item()
    return total


torch.manual_seed(55)
x = torch.randn(150, 4)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(3):
    total = train_epoch(model, optimizer, x[:100], y[:100])
    print(epoch, total, accuracy(model, x[100:], y[100:]))
