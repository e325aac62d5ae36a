# /// case
# title = "The optimizer is made anew in each epoch"
# category = "optimizer"
# kind = "optimizer-recreated"
# kinds_also_ok = ["optimizer-state-reset"]
# severity = "warning"
# names = ["train_one_epoch", "Adam"]
# symptom = "Adam's moments and step count start from zero each epoch"
# symptom_check = 'int(opt.state[model[0].weight]["step"]) == 4'
# cause = "it is constructed in the epoch function"
# fix = "construct it once"
# ///
import torch
import torch.nn as nn

LEARNING_RATE = 2e-3


def get_loader(n_batches=4):
    for _ in range(n_batches):
        x = torch.randn(20, 3)
        yield x, torch.stack([x.norm(dim=1), x[:, 0] * x[:, 1]], dim=1)


def train_one_epoch(model, loader, criterion):  #-
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=1e-4)  #- here
#+ def train_one_epoch(model, loader, criterion, optimizer):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses), optimizer


def main(epochs=5):
    torch.manual_seed(69)
    model = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    criterion = nn.SmoothL1Loss()
#+     optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=1e-4)
    for epoch in range(epochs):
        mean, optimizer = train_one_epoch(model, get_loader(), criterion)  #- also
#+         mean, optimizer = train_one_epoch(model, get_loader(), criterion, optimizer)
        print(f"[{epoch + 1}/{epochs}] {mean:.4f}")
    return model, optimizer


model, opt = main()
