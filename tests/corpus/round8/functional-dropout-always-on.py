# /// case
# title = "F.dropout is called without training=self.training"
# category = "mode"
# kind = "dropout-ignores-mode"
# kinds_also_ok = ["functional-dropout-in-eval"]
# severity = "warning"
# names = ["F.dropout", "training"]
# symptom = "two evaluations of the same input differ"
# symptom_check = "not torch.equal(model(probe), model(probe))"
# cause = "The function's default is training=True, so that eval() does not switch it off."
# fix = "training=self.training"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class GAT(nn.Module):
    """One graph attention layer with two heads and a linear read-out."""

    def __init__(self, fields, hidden, classes, adjacency, dropout=0.3):
        super().__init__()
        self.project = nn.Linear(fields, 2 * hidden, bias=False)
        self.source = nn.Parameter(torch.randn(2, hidden) * 0.1)
        self.target = nn.Parameter(torch.randn(2, hidden) * 0.1)
        self.out = nn.Linear(2 * hidden, classes)
        self.hidden, self.dropout = hidden, dropout
        self.register_buffer("missing", adjacency == 0)

    def forward(self, x):
        x = F.dropout(x, self.dropout)  #- here
#+         x = F.dropout(x, self.dropout, training=self.training)
        h = self.project(x).view(len(x), 2, self.hidden)
        score = (h * self.source).sum(-1)[:, None] + (h * self.target).sum(-1)[None, :]
        score = F.leaky_relu(score, 0.2).masked_fill(self.missing.unsqueeze(-1), float("-inf"))
        mixed = torch.einsum("ijk,jkd->ikd", score.softmax(1), h).flatten(1)
        return self.out(F.elu(mixed))


def evaluate(model, x, y, rows):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y)[rows].float().mean().item()


torch.manual_seed(35)
y = torch.randint(0, 3, (45,))
link = torch.rand(45, 45) < torch.where(y[:, None] == y, 0.3, 0.03)
adjacency = ((link | link.T) | torch.eye(45, dtype=torch.bool)).float()
x = F.one_hot(y, 3).float() @ torch.randn(3, 10) + 0.8 * torch.randn(45, 10)
model = GAT(10, 8, 3, adjacency)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
train, test = torch.arange(30), torch.arange(30, 45)
for epoch in range(20):
    model.train()
    loss = F.cross_entropy(model(x)[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 5 == 4:
        print(epoch, loss.item(), evaluate(model, x, y, test))  #! also
probe = x
