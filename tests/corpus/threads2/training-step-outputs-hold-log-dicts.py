# /// case
# title = "Trainer keeps the log dictionary of each batch for the epoch end"
# category = "retention"
# kind = "graph-retained-in-container"
# kinds_also_ok = ["graph-retained-list"]
# severity = "warning"
# names = ["training_step_outputs", "log", "predictions"]
# symptom = "every batch's prediction and loss stay alive with their graphs"
# symptom_check = "kept == 15"
# cause = "the dictionary is stored as it is"
# fix = "detach what is stored"
# evidence = [
#     { url = "https://github.com/sktime/pytorch-forecasting/pull/1924", title = "[BUG] fixed memory leak in BaseModel by detach some tensor" },
#     { url = "https://github.com/pnnl/neuromancer/pull/292", title = "Fixing leaking autograd graph memory in Trainer" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class QuantileForecaster(nn.Module):
    quantiles = (0.1, 0.5, 0.9)

    def __init__(self, window=12, horizon=3, lr=1e-2):
        super().__init__()
        self.encoder = nn.LSTM(1, 12, batch_first=True)
        self.head = nn.Linear(12, horizon * len(self.quantiles))
        self.horizon, self.lr = horizon, lr
        self.training_step_outputs = []
        self.epoch_means = []

    def forward(self, x):
        _, (h, _) = self.encoder(x.unsqueeze(-1))
        return self.head(h[-1]).view(-1, self.horizon, len(self.quantiles))

    def loss(self, prediction, target):
        errors = target.unsqueeze(-1) - prediction
        q = torch.tensor(self.quantiles)
        return torch.max((q - 1) * errors, q * errors).mean()

    def training_step(self, batch):
        x, y = batch
        prediction = self(x)
        log = {"loss": self.loss(prediction, y), "prediction": prediction, "n": len(x)}
        self.training_step_outputs.append(log)  #- here
#+         self.training_step_outputs.append({k: v.detach() if torch.is_tensor(v) else v for k, v in log.items()})
        return log["loss"]

    def on_train_epoch_end(self):
        losses = [o["loss"].item() for o in self.training_step_outputs]
        self.epoch_means.append(sum(losses) / len(losses))


def fit(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=model.lr)
    for _ in range(epochs):
        for batch in loader:
            loss = model.training_step(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.on_train_epoch_end()


torch.manual_seed(23)
series = torch.sin(torch.arange(400) / 7) + 0.1 * torch.randn(400)
windows = series.unfold(0, 15, 5)
loader = [(w[:, :12], w[:, 12:]) for w in windows.split(16)]
model = QuantileForecaster()
fit(model, loader, 3)
kept = sum(o["prediction"].grad_fn is not None for o in model.training_step_outputs)
print(model.epoch_means, kept)
