# /// case
# title = "The experts of a mixture are kept in a Python list, so their parameters are not the model's"
# category = "optimizer"
# kind = "modules-in-python-list"
# kinds_also_ok = ["unregistered-submodules", "parameter-not-in-optimizer", "missing-modulelist"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["experts", "Mixture", "parameters"]
# symptom = "only the gate is trained; the experts keep their first weights"
# symptom_check = "all(p not in trainer.optimizer.state for expert in trainer.model.experts for p in expert.parameters())"
# cause = "Modules in a plain list are not registered, so model.parameters() does not hold their parameters."
# fix = "nn.ModuleList"
# ///
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.up, self.down = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Mixture(nn.Module):
    def __init__(self, inputs, outputs, experts=4, top=2):
        super().__init__()
        self.gate = nn.Linear(inputs, experts)
        self.experts = [Expert(inputs, 16, outputs) for _ in range(experts)]  #- here
#+         self.experts = nn.ModuleList(Expert(inputs, 16, outputs) for _ in range(experts))
        self.top = top

    def forward(self, x):
        scores = self.gate(x)
        best, which = scores.topk(self.top, dim=1)
        weights = torch.zeros_like(scores).scatter(1, which, best.softmax(1))
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (weights.unsqueeze(2) * outputs).sum(1), weights.mean(0)


class Trainer:
    def __init__(self, model, balance=0.01, lr=1e-2):
        self.model, self.balance = model, balance
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)  #! also
        self.history = []

    def fit(self, x, y, epochs):
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).chunk(4):
                output, load = self.model(x[rows])
                loss = nn.functional.smooth_l1_loss(output, y[rows]) + self.balance * load.square().sum() * len(load)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()  #! also
            self.history.append(loss.item())
        return self


torch.manual_seed(41)
x = torch.randn(160, 6)
y = torch.where(x[:, :1] > 0, x[:, 1:3].sin(), x[:, 3:5].cos())
trainer = Trainer(Mixture(6, 2)).fit(x, y, epochs=6)
print(trainer.history)
