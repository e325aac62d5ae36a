import torch
from torch import nn

torch.manual_seed(4)


def f1(prob, target, thr=0.5):
    pred = (prob > thr).float()
    tp = (pred * target).sum()
    return (2 * tp / (pred.sum() + target.sum() + 1e-8)).item()


model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, "max", factor=0.3, patience=0, min_lr=1e-5, threshold=1e-2)
X = torch.randn(100, 5)
Y = (X[:, :3] + 0.3 * torch.randn(100, 3) > 0.5).float()
pos_weight = (Y[:70] == 0).sum(0) / (Y[:70] == 1).sum(0)
crit = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
for epoch in range(10):
    for i in torch.randperm(70).split(14):
        loss = crit(model(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        score = f1(model(X[70:]).sigmoid(), Y[70:])
    sched.step(score)
    print(epoch, loss.item(), score, sched.get_last_lr())
