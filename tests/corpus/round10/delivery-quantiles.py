# /// case
# title = "Predictions of shape (N, 1) are subtracted from targets of shape (N,)"
# category = "loss"
# kind = "broadcast-in-loss"
# kinds_also_ok = ["shape-mismatch-broadcast", "loss-over-all-pairs", "missing-squeeze"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["prediction", "pinball", "error"]
# symptom = "each model predicts nearly the same quantile for every row whatever its features are"
# symptom_check = "pinball(predict(models[0.5], x[:8]), y[:8], 0.5, reduce=False).numel() == 64"
# cause = "The difference is a matrix of all pairs of rows, and its mean is minimal at the quantile of all targets."
# fix = "squeeze the last dimension"
# ///
import torch
from torch import nn

TAUS = (0.1, 0.5, 0.9)


def parcels(n, features=6):
    x = torch.randn(n, features)
    minutes = 2.0 * x[:, 0] - x[:, 1] + 0.5 * x[:, 2].abs()
    return x, minutes + (0.2 + 0.3 * torch.sigmoid(x[:, 3])) * torch.randn(n)


def pinball(prediction, y, tau, reduce=True):
    error = y - prediction  #! also
    cost = torch.maximum(tau * error, (tau - 1) * error)
    return cost.mean() if reduce else cost


def predict(model, x):
    prediction = model(x)  #- here
#+     prediction = model(x).squeeze(-1)
    return prediction


def fit_quantile(tau, x, y, epochs=25, batch=64, lr=0.02):
    model = nn.Sequential(nn.Linear(x.shape[1], 24), nn.ELU(), nn.Linear(24, 1))
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    decay = torch.optim.lr_scheduler.ExponentialLR(opt, 0.93)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(batch):
            opt.zero_grad()
            loss = pinball(predict(model, x[rows]), y[rows], tau)
            loss.backward()
            opt.step()
        decay.step()
    return model, loss.item()


torch.manual_seed(41)
x, y = parcels(320)
models = {}
for tau in TAUS:
    models[tau], final = fit_quantile(tau, x, y)
    print(f"tau {tau}: training cost {final:.4f}")
with torch.no_grad():
    low, mid, high = (predict(models[tau], x).flatten() for tau in TAUS)
print(f"width of the band {(high - low).mean():.3f}, spread of the median {mid.std():.3f}")
