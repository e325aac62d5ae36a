# /// case
# title = "Attention weights are read through .data for the pooling"
# category = "graph-break"
# kind = "data-attribute-breaks-graph"
# kinds_also_ok = ["graph-break", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["weights", "data", "attention"]
# symptom = "the attention layer receives no gradient"
# symptom_check = "model.attention.weight.grad is None and model.embed.weight.grad is not None"
# cause = ".data gives a tensor outside of the graph"
# fix = "use the weights themselves"
# ///
import torch
import torch.nn as nn


class AttentivePooling(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.attention = nn.Linear(dim, 1)
        self.out = nn.Linear(dim, classes)
        self.last_weights = None

    def forward(self, tokens):
        states = self.embed(tokens)
        scores = self.attention(torch.tanh(states)).squeeze(-1)
        scores = scores.masked_fill(tokens == 0, -1e9)
        weights = torch.softmax(scores, dim=1)
        self.last_weights = weights.data  #! also
        pooled = (self.last_weights.unsqueeze(-1) * states).sum(dim=1)  #- here
#+         pooled = (weights.unsqueeze(-1) * states).sum(dim=1)
        return self.out(pooled)


def make_batch(n, length, vocab):
    tokens = torch.randint(1, vocab, (n, length))
    for row, keep in enumerate(torch.randint(3, length + 1, (n,))):
        tokens[row, keep:] = 0
    return tokens, (tokens == 7).any(dim=1).long()


torch.manual_seed(3)
model = AttentivePooling(vocab=20, dim=12, classes=2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
model.train()
for step in range(12):
    tokens, labels = make_batch(16, 9, 20)
    optimizer.zero_grad()
    loss = criterion(model(tokens), labels)
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(step, loss.item(), model.last_weights.max().item())
