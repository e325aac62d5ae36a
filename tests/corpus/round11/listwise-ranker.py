# /// case
# title = "The NDCG term uses ranks from argsort and has no gradient"
# category = "graph-break"
# kind = "argsort-not-differentiable"
# kinds_also_ok = ["non-differentiable-loss-term", "hard-ranks", "graph-break", "loss-term-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["ranks", "argsort", "ndcg", "scores"]
# symptom = "the listwise term is a constant to autograd; only the pointwise term trains"
# symptom_check = "not terms['listwise'].requires_grad"
# cause = "The ranks are integers from argsort, which have no derivative with respect to the scores."
# fix = "use soft ranks, a sum of sigmoids of the score differences"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Scorer(nn.Module):
    def __init__(self, features, hidden=32):
        super().__init__()
        self.document = nn.Linear(features, hidden)
        self.context = nn.Linear(features, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, slate):
        summary = self.context(slate.mean(dim=1, keepdim=True))
        return self.out(F.relu(self.document(slate) + summary)).squeeze(-1)


class SlateObjective:
    """Pointwise regression on the grades plus the loss in NDCG of the slate."""

    def __init__(self, pointwise=0.2):
        self.pointwise = pointwise

    def ranks(self, scores):
        return scores.argsort(dim=1, descending=True).argsort(dim=1) + 1.0  #- here
#+         return 0.5 + torch.sigmoid((scores[:, None, :] - scores[:, :, None]) / 0.2).sum(dim=2)

    def ndcg(self, scores, grades):
        gains = 2.0 ** grades - 1.0
        best = gains.sort(dim=1, descending=True).values
        positions = torch.arange(1.0, grades.shape[1] + 1.0)
        ideal = (best / torch.log2(1.0 + positions)).sum(dim=1).clamp(min=1e-6)
        achieved = (gains / torch.log2(1.0 + self.ranks(scores))).sum(dim=1)  #! also
        return achieved / ideal

    def __call__(self, scores, grades):
        terms = {
            "pointwise": self.pointwise * F.mse_loss(scores, grades),
            "listwise": (1.0 - self.ndcg(scores, grades)).mean(),  #! also
        }
        return sum(terms.values()), terms  #! also


class SlateStore:
    def __init__(self, slates, length, features):
        taste = torch.randn(features)
        self.slates = torch.randn(slates, length, features)
        utility = self.slates @ taste / features ** 0.5 + 0.5 * torch.randn(slates, length)
        self.grades = (utility * 1.5 + 1.0).round().clamp(0, 4)

    def epochs(self, count, batch_size):
        for epoch in range(count):
            for rows in torch.randperm(len(self.slates)).split(batch_size):
                yield epoch, self.slates[rows], self.grades[rows]


class Tracker(dict):
    def add(self, epoch, terms):
        row = self.setdefault(epoch, {name: [] for name in terms})
        for name, value in terms.items():
            row[name].append(float(value.detach()))

    def show(self):
        for epoch, row in self.items():
            print(epoch, {name: round(sum(v) / len(v), 4) for name, v in row.items()})


torch.manual_seed(33)
store = SlateStore(slates=400, length=10, features=12)
scorer = Scorer(12)
objective = SlateObjective()
optimizer = torch.optim.Adam(scorer.parameters(), lr=2e-3)
tracker = Tracker()
for epoch, slates, grades in store.epochs(6, batch_size=32):
    total, terms = objective(scorer(slates), grades)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    tracker.add(epoch, terms)
tracker.show()
