# /// case
# title = "The meters add up loss tensors together with their graphs"
# category = "retention"
# kind = "loss-accumulated-with-graph"
# kinds_also_ok = ["running-loss-not-detached", "graph-retained", "memory-leak"]
# severity = "warning"
# names = ["loss", "penalty", "total", "record", "update"]
# symptom = "memory grows with every batch since the totals hold all graphs"
# symptom_check = "torch.is_tensor(experiment.board.meters['loss'].total) and experiment.board.meters['loss'].total.requires_grad"
# cause = "The meter gets the loss itself, not its value."
# fix = "pass loss.item() and penalty.item()"
# ///
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Impressions(Dataset):
    def __init__(self, count, fields):
        self.codes = torch.stack([torch.randint(0, n, (count,)) for n in fields], dim=1)
        taste = torch.randn(fields[0], 4) @ torch.randn(4, fields[1])
        logit = taste[self.codes[:, 0], self.codes[:, 1]] + (self.codes[:, 2] == 0).float() - 0.5
        self.clicked = torch.bernoulli(logit.sigmoid())

    def __len__(self):
        return len(self.clicked)

    def __getitem__(self, index):
        return self.codes[index], self.clicked[index]


class FactorizationMachine(nn.Module):
    def __init__(self, fields, dim=8):
        super().__init__()
        offsets = torch.tensor([0, *fields[:-1]]).cumsum(0)
        self.register_buffer("offsets", offsets)
        self.linear = nn.Embedding(sum(fields), 1)
        self.factors = nn.Embedding(sum(fields), dim)
        nn.init.normal_(self.factors.weight, std=0.1)
        nn.init.zeros_(self.linear.weight)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, codes):
        rows = codes + self.offsets
        factors = self.factors(rows)
        pairwise = 0.5 * (factors.sum(1).square() - factors.square().sum(1)).sum(-1)
        return self.bias + self.linear(rows).sum((1, 2)) + pairwise, factors


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.total, self.count = 0.0, 0

    def update(self, value, count=1):
        self.total = self.total + value * count  #! also
        self.count += count

    @property
    def average(self):
        return float(self.total) / max(self.count, 1)


class Board:
    def __init__(self, *names):
        self.meters = {name: Meter() for name in names}

    def record(self, count, **values):
        for name, value in values.items():
            self.meters[name].update(value, count)  #! also

    def line(self):
        return " ".join(f"{name} {meter.average:.4f}" for name, meter in self.meters.items())


class Experiment:
    def __init__(self, fields, penalty=1e-3):
        self.model = FactorizationMachine(fields)
        self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=0.1)
        self.penalty = penalty
        self.board = Board("loss", "penalty", "accuracy")

    def train_step(self, codes, clicked):
        logit, factors = self.model(codes)
        loss = F.binary_cross_entropy_with_logits(logit, clicked)
        penalty = self.penalty * factors.square().sum((1, 2)).mean()
        self.optimizer.zero_grad()
        (loss + penalty).backward()
        self.optimizer.step()
        accuracy = (logit > 0).eq(clicked.bool()).float().mean()
        self.board.record(len(clicked), loss=loss, penalty=penalty, accuracy=accuracy)  #- here
#+         self.board.record(len(clicked), loss=loss.item(), penalty=penalty.item(), accuracy=accuracy.item())

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for codes, clicked in loader:
                self.train_step(codes, clicked)
            print(epoch, self.board.line())


torch.manual_seed(3)
fields = (40, 30, 6)
experiment = Experiment(fields)
experiment.fit(DataLoader(Impressions(1500, fields), batch_size=50, shuffle=True), epochs=3)
