# /// case
# title = "The evaluation sets eval mode and nobody sets train mode again"
# category = "mode"
# kind = "training-in-eval-mode"
# kinds_also_ok = ["missing-train-mode"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["eval", "train", "evaluate"]
# symptom = "after the first evaluation dropout and batch norm are off in training"
# symptom_check = "int(model[1].num_batches_tracked) < 20"
# cause = "model.train() is called once, before the loop"
# fix = "call it in each epoch"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def evaluate(model, x, y):
    model.eval()  #! also
    with torch.no_grad():
        logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def train_epoch(model, optimizer, x, y, batch=16):
#+     model.train()
    for rows in torch.randperm(len(x)).split(batch):  #! here
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(80)
model = nn.Sequential(
    nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.4),
    nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.4),
    nn.Linear(64, 4),
)
x = torch.randn(112, 20)
y = (x[:, :8].reshape(-1, 4, 2).sum(-1)).argmax(1)
train_x, train_y, val_x, val_y = x[:80], y[:80], x[80:], y[80:]
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
model.train()  #- also
for epoch in range(4):
    train_loss = train_epoch(model, optimizer, train_x, train_y)  #! also
    val_loss, accuracy = evaluate(model, val_x, val_y)
    print(epoch, train_loss, val_loss, accuracy)
