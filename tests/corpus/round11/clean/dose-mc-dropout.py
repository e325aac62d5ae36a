import torch
import torch.nn as nn
import torch.nn.functional as F


class BayesianRegressor(nn.Module):
    """MC dropout; predicts the mean and the log variance."""

    def __init__(self, hidden=48, p=0.1):
        super().__init__()
        self.p = p
        self.fc1 = nn.Linear(1, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.mean = nn.Linear(hidden, 1)
        self.log_var = nn.Linear(hidden, 1)

    def forward(self, x):
        x = F.dropout(torch.relu(self.fc1(x)), self.p, training=True)
        x = F.dropout(torch.relu(self.fc2(x)), self.p, training=True)
        return self.mean(x).squeeze(-1), self.log_var(x).squeeze(-1).clamp(-6, 3)


def response(dose):
    return torch.sin(2 * dose) * (dose < 1.5) + 0.3 * dose


@torch.no_grad()
def predict(model, x, samples=40):
    model.eval()
    draws = [model(x) for _ in range(samples)]
    means = torch.stack([m for m, _ in draws])
    aleatoric = torch.stack([v for _, v in draws]).exp().mean(0)
    return means.mean(0), means.var(0), aleatoric


class Fit:
    def __init__(self, model, lr=5e-3, weight_decay=1e-4):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)
        self.loss = nn.GaussianNLLLoss()

    def __call__(self, x, y, epochs):
        self.model.train()
        for epoch in range(epochs):
            for idx in torch.randperm(len(x)).split(40):
                mean, log_var = self.model(x[idx])
                nll = self.loss(mean, y[idx], log_var.exp())
                self.optimizer.zero_grad()
                nll.backward()
                self.optimizer.step()
            if epoch % 20 == 0:
                print(f"epoch {epoch:3d} nll {nll.item():.4f}")


torch.manual_seed(44)
torch.set_num_threads(1)
dose = torch.rand(200, 1) * 2
y = response(dose).squeeze(1) + 0.1 * torch.randn(200)
model = BayesianRegressor()
Fit(model)(dose, y, epochs=60)
grid = torch.linspace(0, 4, 9).unsqueeze(1)
mean, epistemic, aleatoric = predict(model, grid)
for g, m, e, a in zip(grid.flatten().tolist(), mean.tolist(), epistemic.tolist(), aleatoric.tolist()):
    print(f"dose {g:.1f}: {m:+.3f} +- {e ** 0.5:.3f} (model) {a ** 0.5:.3f} (noise)")
