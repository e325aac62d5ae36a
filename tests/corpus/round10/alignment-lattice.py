# /// case
# title = "States of the lattice that cannot be reached are minus infinity in a log-sum"
# category = "numerics"
# kind = "infinite-log-zero"
# kinds_also_ok = ["nan-gradient-of-logaddexp", "logsumexp-of-minus-infinity", "nan-gradients", "inf-minus-inf"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["IMPOSSIBLE", "logaddexp", "alpha"]
# symptom = "the first loss is right, every later one is nan"
# symptom_check = "any(bool(p.isnan().any()) for p in model.parameters())"
# cause = "logaddexp of two infinities is right forward, its derivative contains inf - inf."
# fix = "a large finite number such as -1e9"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

BLANK = 0
IMPOSSIBLE = float("-inf")  #- here
#+ IMPOSSIBLE = -1e9


def lattice(labels):
    states = [BLANK]
    for label in labels:
        states += [label, BLANK]
    skip = [i >= 2 and s != BLANK and s != states[i - 2] for i, s in enumerate(states)]
    return torch.tensor(states), torch.tensor(skip)


def sequence_nll(log_probs, labels):
    states, skip = lattice(labels)
    emissions = log_probs[:, states]
    alpha = torch.cat([emissions[0, :2], emissions.new_full((len(states) - 2,), IMPOSSIBLE)])  #! also
    for frame in emissions[1:]:
        advance = F.pad(alpha[:-1], (1, 0), value=IMPOSSIBLE)  #! also
        jump = F.pad(alpha[:-2], (2, 0), value=IMPOSSIBLE).masked_fill(~skip, IMPOSSIBLE)  #! also
        alpha = torch.logaddexp(torch.logaddexp(alpha, advance), jump) + frame  #! also
    return -torch.logaddexp(alpha[-1], alpha[-2])


class AcousticModel(nn.Module):
    def __init__(self, bins, symbols, width=24):
        super().__init__()
        self.rnn = nn.GRU(bins, width, batch_first=True)
        self.symbols = nn.Linear(width, symbols)

    def forward(self, features):
        return self.symbols(self.rnn(features)[0]).log_softmax(-1)


def spoken(count, bins=10, symbols=6, words=3, stretch=4):
    templates = 2 * torch.randn(symbols, bins)
    labels = torch.randint(1, symbols, (count, words))
    features = templates[labels].repeat_interleave(stretch, 1)
    return features + 0.3 * torch.randn_like(features), labels.tolist()


torch.manual_seed(14)
features, labels = spoken(12)
model = AcousticModel(10, 6)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for epoch in range(12):
    log_probs = model(features)
    loss = torch.stack([sequence_nll(p, l) for p, l in zip(log_probs, labels)]).mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    losses.append(loss.item())
print([round(value, 3) for value in losses])
