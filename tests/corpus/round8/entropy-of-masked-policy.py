# /// case
# title = "The entropy of a policy with forbidden actions is -(p * log p) with p = 0"
# category = "numerics"
# kind = "log-of-zero"
# kinds_also_ok = ["nan-gradient", "zero-times-infinity"]
# severity = "error"
# names = ["entropy", "log", "softmax", "masked_fill"]
# symptom = "after one step the policy's probabilities are nan, and drawing from them raises"
# raises = "RuntimeError"
# raises_message = "probability tensor contains either"
# cause = "A forbidden action has probability zero, and 0 * log(0) is nan."
# fix = "leave zero probabilities out, with xlogy or a clamp"
# ///
import torch
import torch.nn as nn

CITIES = 6


class Constructor(nn.Module):
    """Chooses the next city of a tour from the current one and those visited."""

    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Linear(2, width)
        self.query = nn.Linear(2 * width, width)

    def forward(self, cities, current, visited):
        h = self.embed(cities).tanh()
        here = h[torch.arange(len(h)), current]
        q = self.query(torch.cat([here, h.mean(1)], dim=1))
        score = torch.einsum("nd,ncd->nc", q, h) / h.shape[-1] ** 0.5
        return score.masked_fill(visited, float("-inf")).softmax(1)


def entropy(p):
    return -(p * p.log()).sum(1)  #- here
#+     return -(p * p.clamp(min=1e-9).log()).sum(1)


def tour(model, cities):
    n = len(cities)
    rows = torch.arange(n)
    current = torch.zeros(n, dtype=torch.long)
    visited = torch.zeros(n, CITIES, dtype=torch.bool)
    visited[:, 0] = True
    length, log_prob, spread = torch.zeros(n), torch.zeros(n), torch.zeros(n)
    for _ in range(CITIES - 1):
        p = model(cities, current, visited.clone())  #! also
        choice = torch.multinomial(p.detach(), 1).squeeze(1)  #! also
        log_prob = log_prob + p[rows, choice].log()
        spread = spread + entropy(p)  #! also
        length = length + (cities[rows, choice] - cities[rows, current]).norm(dim=1)
        current = choice
        visited[rows, choice] = True
    return length, log_prob, spread


torch.manual_seed(50)
model = Constructor()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
losses = []
for step in range(8):
    length, log_prob, spread = tour(model, torch.rand(32, CITIES, 2))
    advantage = length - length.mean()
    loss = (advantage * log_prob).mean() - 0.01 * spread.mean()
    losses.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, length.mean().item(), losses[-1])
