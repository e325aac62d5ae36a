"""BP867 padding-counted-in-mean."""

PROGRAMS = {
    "a translator's loss without reduction, masked by its labels": """
import torch
from torch import nn
import torch.nn.functional as F

class Decoder(nn.Module):
    def __init__(self, vocab=15):
        super().__init__()
        self.table = nn.Embedding(vocab, 8)
        self.cell = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, vocab)

    def forward(self, ids):
        return self.out(self.cell(self.table(ids))[0])

def masked(logits, labels, pad=0):
    each = F.cross_entropy(logits.reshape(-1, logits.size(-1)), labels.reshape(-1), reduction="none")
    real = labels.reshape(-1).ne(pad).float()
    return torch.mean(each * real)  # <- BP867

model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for turn in range(4):
    ids = torch.randint(1, 15, (3, 7))
    for row, length in enumerate((7, 5 - turn % 2, 3)):
        ids[row, length:] = 0
    loss = masked(model(ids[:, :-1]), ids[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "the mask fills with zero before the mean": """
import torch
from torch import nn

tagger = nn.Sequential(nn.Embedding(12, 6), nn.Linear(6, 4))
criterion = nn.CrossEntropyLoss(reduction="none")
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
for turn in range(4):
    words = torch.randint(1, 12, (4, 5))
    tags = torch.randint(0, 4, (4, 5))
    tags[1:, 2 + turn % 3 :] = -1
    losses = criterion(tagger(words).transpose(1, 2), tags.clamp_min(0))
    losses = losses.masked_fill(tags == -1, 0.0)
    loss = losses.mean()  # <- BP867
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "sentences of different lengths are averaged over all places": """
import torch
from torch import nn

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 10, padding_idx=0)
        self.head = nn.Linear(10, 3)

    def forward(self, ids):
        hidden = self.embedding(ids)
        hidden = hidden.mean(1)  # <- BP867
        return self.head(hidden)

model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for turn in range(5):
    ids = torch.randint(1, 30, (4, 8))
    for row in range(4):
        ids[row, 2 + (row + turn) % 5 :] = 0
    loss = nn.functional.cross_entropy(model(ids), torch.randint(0, 3, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "divided by what is real": """
import torch
from torch import nn

model = nn.Sequential(nn.Embedding(12, 6, padding_idx=0), nn.Linear(6, 12))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for turn in range(4):
    ids = torch.randint(1, 12, (4, 6))
    ids[1:, 3:] = 0
    each = nn.functional.cross_entropy(model(ids).transpose(1, 2), ids, reduction="none")
    real = (ids != 0).float()
    loss = (each * real).mean() / real.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "only sure guesses count, as a share of all": """
import torch
from torch import nn

model = nn.Linear(6, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    weak = torch.randn(16, 6)
    with torch.no_grad():
        sure, guess = model(weak).softmax(-1).max(-1)
    mask = (sure > 0.4).float()
    each = nn.functional.cross_entropy(model(weak + 0.1 * torch.randn(16, 6)), guess, reduction="none")
    labelled = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 4, (8,)))
    loss = labelled + (each * mask).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "nothing is padded, or the mean is over the width": """
import torch
from torch import nn

words, out = nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 3)
gate = nn.Linear(5, 3)
optimizer = torch.optim.SGD([*words.parameters(), *out.parameters(), *gate.parameters()], lr=0.1)
for _ in range(4):
    full = torch.randint(1, 20, (4, 5))
    padded = full.clone()
    padded[:, 3:] = 0
    logits = out(words(full).mean(1)) + gate(words(padded).mean(-1))
    loss = nn.functional.cross_entropy(logits, torch.randint(0, 3, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "mean over padded loss": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.LSTM(3, 5, batch_first=True)
head = nn.Linear(5, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
seqs = [torch.randn(n, 3) for n in (3, 6, 8)]
x = nn.utils.rnn.pad_sequence(seqs, batch_first=True)
y = nn.utils.rnn.pad_sequence([s.sum(1) for s in seqs], batch_first=True)
mask = torch.zeros(3, 8)
for i, s in enumerate(seqs):
    mask[i, : len(s)] = 1
for _ in range(4):
    out = head(model(x)[0]).squeeze(-1)
    loss = (F.mse_loss(out, y, reduction="none") * mask).mean()  # <- BP867
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "masked loss divided by the mask": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model, head = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
seqs = [torch.randn(n, 3) for n in (3, 6, 8)]
x = nn.utils.rnn.pad_sequence(seqs, batch_first=True)
y = nn.utils.rnn.pad_sequence([s.sum(1) for s in seqs], batch_first=True)
mask = torch.zeros(3, 8)
for i, s in enumerate(seqs):
    mask[i, : len(s)] = 1
for _ in range(4):
    out = head(model(x)[0]).squeeze(-1)
    loss = (F.mse_loss(out, y, reduction="none") * mask).sum() / mask.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a mean over masked errors that is divided by the share": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 8)
optimizer = torch.optim.Adam(net.parameters())
mask = (torch.arange(8) < torch.tensor([[3], [5], [8]])).float()
for _ in range(4):
    x = torch.randn(3, 3)
    loss = ((net(x) - 1).pow(2) * mask).mean() / mask.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "random drops of targets": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 8)
optimizer = torch.optim.Adam(net.parameters())
for _ in range(4):
    x, keep = torch.randn(3, 3), (torch.rand(3, 8) > 0.3).float()
    loss = ((net(x) - 1).pow(2) * keep).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
