# /// case
# title = "The checkpoint is loaded with assign=True after the optimizer was made"
# category = "optimizer"
# kind = "optimizer-holds-replaced-parameters"
# kinds_also_ok = ["stale-optimizer-parameters", "parameters-replaced-after-optimizer", "load-state-dict-assign", "parameters-not-in-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["load_state_dict", "assign", "optimizer", "model"]
# symptom = "after resuming nothing changes any more"
# symptom_check = "final_score == resumed_score"
# cause = "assign=True replaces the parameters of the model, the optimizer still has those from before."
# fix = "load without assign=True (or make the optimizer afterwards)"
# ///
import os
import tempfile
import torch
from torch import nn
import torch.nn.functional as F


def sensor_data(n=400):
    t = torch.rand(n, 3) * 2 - 1
    y = torch.stack([t[:, 0] * t[:, 1], torch.sin(3 * t[:, 2])], dim=1)
    return t, y + 0.02 * torch.randn_like(y)


class Calibrator(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.inp = nn.Linear(3, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        x = F.gelu(self.inp(x))
        x = x + F.gelu(self.mid(x))
        return self.out(x)


class Experiment:
    def __init__(self, lr=3e-3):
        self.model = Calibrator()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=1e-4)  #! also
        self.epoch = 0

    def save(self, path):
        torch.save({
            "epoch": self.epoch,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }, path)

    def load(self, path):
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(checkpoint["model"], assign=True)  #- here
#+         self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])  #! also
        self.epoch = checkpoint["epoch"]
        print("resumed from epoch", self.epoch)

    def run(self, x, y, until):
        while self.epoch < until:
            for idx in torch.randperm(len(x)).split(50):
                self.optimizer.zero_grad()  #! also
                loss = F.mse_loss(self.model(x[idx]), y[idx])
                loss.backward()
                self.optimizer.step()  #! also
            self.epoch += 1

    @torch.no_grad()
    def score(self, x, y):
        return F.mse_loss(self.model(x), y).item()


torch.manual_seed(4)
torch.set_num_threads(1)
x, y = sensor_data()

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "last.pt")
    first = Experiment()
    first.run(x, y, until=10)
    first.save(path)
    print("before interruption", first.score(x, y))

    second = Experiment()
    second.load(path)  #! also
    resumed_score = second.score(x, y)
    second.run(x, y, until=30)

final_score = second.score(x, y)
print(f"resumed at {resumed_score:.5f}, finished at {final_score:.5f}")
