# /// case
# title = "score() puts the emulator into eval mode, and nobody puts it back"
# category = "mode"
# kind = "eval-never-undone"
# kinds_also_ok = ["train-mode-not-restored", "trained-in-eval-mode"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["eval", "train", "score"]
# symptom = "batch norm never updates its statistics and dropout is off from the start"
# symptom_check = "all(int(m.num_batches_tracked) == 0 for m in emulator.modules() if isinstance(m, nn.BatchNorm1d))"
# cause = "The first score is taken before training, and model.eval() stays in force."
# fix = "emulator.train() at the start of each epoch"
# ///
import torch
from torch import nn


class Emulator(nn.Module):
    def __init__(self, inputs=4, width=32, depth=2):
        super().__init__()
        layers = []
        for size in [inputs] + [width] * (depth - 1):
            layers += [nn.Linear(size, width), nn.BatchNorm1d(width), nn.GELU(), nn.Dropout(0.1)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


def simulator(x):
    return torch.exp(-x[:, 0] ** 2) * torch.cos(3 * x[:, 1]) + 0.5 * x[:, 2] * x[:, 3]


class EarlyStopping:
    def __init__(self, patience):
        self.best, self.bad, self.patience = float("inf"), 0, patience

    def __call__(self, score):
        self.bad = 0 if score < self.best else self.bad + 1
        self.best = min(self.best, score)
        return self.bad >= self.patience


@torch.no_grad()
def score(model, x):
    model.eval()  #! here
    return (model(x) - simulator(x)).square().mean().item()  #! also


torch.manual_seed(43)
emulator = Emulator()
optimizer = torch.optim.AdamW(emulator.parameters(), lr=4e-3)
stop = EarlyStopping(patience=5)
held_out = torch.randn(64, 4)
print("before", score(emulator, held_out))  #! here
updates = 0
for epoch in range(6):  #! here
#+     emulator.train()
    for _ in range(4):  #! here
        x = torch.randn(48, 4)
        loss = nn.functional.mse_loss(emulator(x), simulator(x))  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
    value = score(emulator, held_out)  #! also
    print(f"epoch {epoch}: {value:.4f}")
    if stop(value):
        break
