# /// case
# title = "The frozen shared encoder still updates its batch-norm statistics"
# category = "mode"
# kind = "frozen-batchnorm-in-train-mode"
# kinds_also_ok = ["batchnorm-statistics-drift", "frozen-module-in-train-mode"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["train", "encoder", "BatchNorm1d"]
# symptom = "training the second product spoils the first one, which uses the same encoder"
# symptom_check = "before - after > 0.1"
# cause = "requires_grad_(False) does not stop the running statistics, and train() puts the frozen encoder in train mode."
# fix = "put the frozen encoder in eval mode"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Encoder(nn.Sequential):
    def __init__(self, features, dim):
        super().__init__(
            nn.Linear(features, dim), nn.BatchNorm1d(dim), nn.ReLU(),
            nn.Linear(dim, dim), nn.BatchNorm1d(dim), nn.ReLU(),
        )


class Product(nn.Module):
    def __init__(self, encoder, dim, classes):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(dim, classes))

    def forward(self, x):
        return self.head(self.encoder(x))


class Market:
    def __init__(self, centres, shift=0.0, spread=1.0):
        self.centres, self.shift, self.spread = centres, shift, spread

    def draw(self, count):
        label = torch.randint(0, len(self.centres), (count,))
        x = self.centres[label] + 0.8 * torch.randn(count, self.centres.shape[1])
        return self.spread * x + self.shift, label


class Fit:
    def __init__(self, model, lr, batch_size=64):
        self.model, self.batch_size = model, batch_size
        wanted = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(wanted, lr=lr)

    def epoch(self, x, label):
        self.model.train()  #! here
#+         if not any(p.requires_grad for p in self.model.encoder.parameters()):
#+             self.model.encoder.eval()
        for rows in torch.randperm(len(label)).split(self.batch_size):
            loss = F.cross_entropy(self.model(x[rows]), label[rows], label_smoothing=0.05)  #! also
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def accuracy(self, x, label):
        self.model.eval()
        with torch.no_grad():
            return self.model(x).argmax(1).eq(label).float().mean().item()

    def run(self, market, epochs, size=1024):
        data, test = market.draw(size), market.draw(400)
        for _ in range(epochs):
            self.epoch(*data)
        return self.accuracy(*test)


torch.manual_seed(58)
home = Market(torch.randn(8, 16))
abroad = Market(torch.randn(5, 16), shift=2.0, spread=1.8)

first = Product(Encoder(16, 32), 32, 8)
first_fit = Fit(first, lr=3e-3)
print(f"home {first_fit.run(home, epochs=6):.3f}")

shared = first.encoder.requires_grad_(False)  #! also
second = Product(shared, 32, 5)
second_fit = Fit(second, lr=1e-2)
check = home.draw(1000)
before = first_fit.accuracy(*check)
print(f"abroad {second_fit.run(abroad, epochs=8):.3f}")
after = first_fit.accuracy(*check)
print(f"home on the shared encoder {before:.3f} -> {after:.3f}")
