# /// case
# title = "The model is put into eval mode by the validation and never back"
# category = "mode"
# kind = "eval-mode-left-on"
# kinds_also_ok = ["missing-train-after-eval", "train-mode-not-restored", "eval-during-training"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["train", "eval", "evaluate"]
# symptom = "from the second epoch on there is no dropout and the running statistics of the batch norm stay those of the first"
# symptom_check = "int(model.norm.num_batches_tracked) < 4 * len(scores)"
# cause = "evaluate calls eval() and train() is called once before all epochs."
# fix = "call train() in each epoch"
# ///
import copy

import torch
from torch import nn


class PowerCurve(nn.Module):
    def __init__(self, lags, hidden=32, dropout=0.1):
        super().__init__()
        self.first = nn.Linear(lags, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(dropout)
        self.second = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.second(self.drop(torch.relu(self.norm(self.first(x))))).squeeze(-1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.waited, self.state = patience, float("inf"), 0, None

    def __call__(self, score, model):
        if score < self.best:
            self.best, self.waited, self.state = score, 0, copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited > self.patience


class Forecasting:
    def __init__(self, model, lr, patience=8):
        self.model, self.loss = model, nn.MSELoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.stopping = EarlyStopping(patience)

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()  #! also
        return self.loss(self.model(x), y).item()

    def fit(self, train, valid, epochs, batch=40):
        x, y = train
        scores = []
        self.model.train()  #- here
        for epoch in range(epochs):  #! here
#+             self.model.train()
            for rows in torch.randperm(len(x)).split(batch):
                self.optimizer.zero_grad()
                self.loss(self.model(x[rows]), y[rows]).backward()
                self.optimizer.step()
            score = self.evaluate(*valid)  #! also
            scores.append(score)
            if self.stopping(score, self.model):
                break
        return scores


def wind(n, lags=12):
    gusts = torch.randn(n + lags)
    speed = torch.stack([gusts[i:i + 8].mean() for i in range(n + lags - 8)])
    windows = speed.unfold(0, lags + 1, 1)
    return windows[:, :lags] * 3, (windows[:, lags] * 3).clamp(-1, 1.5)


torch.manual_seed(14)
x, y = wind(260)
model = PowerCurve(lags=12)
scores = Forecasting(model, lr=5e-3).fit((x[:160], y[:160]), (x[200:], y[200:]), epochs=6)
print([round(s, 4) for s in scores])
