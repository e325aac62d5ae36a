# /// case
# title = "Hinge terms are collected as numbers and wrapped in a new tensor"
# category = "graph-break"
# kind = "graph-break-retensor"
# kinds_also_ok = ["detached-loss", "item-breaks-graph"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["terms", "loss"]
# symptom = "no parameter ever receives a gradient"
# symptom_check = "all(p.grad is None for p in scorer.parameters())"
# cause = "item() and torch.tensor cut the graph; requires_grad=True only makes the result a new leaf"
# fix = "stack the tensors"
# ///
import torch
import torch.nn as nn


class Scorer(nn.Module):
    def __init__(self, dim, hidden=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, docs):
        return self.body(docs).squeeze(-1)


def pairwise_hinge(scores, relevance, margin=1.0):
    terms = []
    for i in range(len(scores)):
        for j in range(len(scores)):
            if relevance[i] > relevance[j]:
                terms.append(torch.relu(margin - scores[i] + scores[j]).item())  #- also
    return torch.tensor(terms, requires_grad=True).mean()  #- here
#+                 terms.append(torch.relu(margin - scores[i] + scores[j]))
#+     return torch.stack(terms).mean()


torch.manual_seed(0)
queries = [(torch.randn(6, 9), torch.tensor([0, 1, 2, 0, 1, 3])) for _ in range(5)]
scorer = Scorer(9)
optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-2)
for epoch in range(2):
    running = 0.0
    for docs, relevance in queries:
        optimizer.zero_grad()
        loss = pairwise_hinge(scorer(docs), relevance)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch} hinge {running / len(queries):.4f}")
