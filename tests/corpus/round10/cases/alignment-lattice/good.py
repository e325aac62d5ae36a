import torch
import torch.nn as nn
import torch.nn.functional as F

BLANK = 0
IMPOSSIBLE = -1e9


def lattice(labels):
    states = [BLANK]
    for label in labels:
        states += [label, BLANK]
    skip = [i >= 2 and s != BLANK and s != states[i - 2] for i, s in enumerate(states)]
    return torch.tensor(states), torch.tensor(skip)


def sequence_nll(log_probs, labels):
    states, skip = lattice(labels)
    emissions = log_probs[:, states]
    alpha = torch.cat([emissions[0, :2], emissions.new_full((len(states) - 2,), IMPOSSIBLE)])
    for frame in emissions[1:]:
        advance = F.pad(alpha[:-1], (1, 0), value=IMPOSSIBLE)
        jump = F.pad(alpha[:-2], (2, 0), value=IMPOSSIBLE).masked_fill(~skip, IMPOSSIBLE)
        alpha = torch.logaddexp(torch.logaddexp(alpha, advance), jump) + frame
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
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print([round(value, 3) for value in losses])
