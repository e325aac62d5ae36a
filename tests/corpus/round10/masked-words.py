# /// case
# title = "labels is another name for ids, so that masking the input masks the labels too"
# category = "data"
# kind = "aliased-labels"
# kinds_also_ok = ["labels-overwritten", "missing-clone", "in-place-edit-of-targets", "target-leak"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["labels", "ids", "MASK"]
# symptom = "the loss goes to nothing within a few epochs: every target is the mask token"
# symptom_check = "bool((labels[picked] == MASK).all())"
# cause = "Assignment copies no tensor; the in-place write changes the one both names mean."
# fix = "labels = ids.clone()"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

CLS, MASK, FIRST = 0, 1, 2
VOCAB, LENGTH = 42, 12


class MaskedLM(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(VOCAB, width)
        self.places = nn.Embedding(LENGTH, width)
        self.body = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.decoder = nn.Linear(width, VOCAB)

    def forward(self, ids):
        hidden = self.words(ids) + self.places(torch.arange(ids.size(1)))
        return self.decoder(self.body(hidden))


class Collator:
    def __init__(self, probability=0.2):
        self.probability = probability

    def __call__(self, rows):
        ids = torch.stack(rows)
        labels = ids  #- here
#+         labels = ids.clone()
        picked = (torch.rand(ids.shape) < self.probability) & (ids != CLS)
        ids[picked] = MASK  #! here
        return ids, labels, picked  #! also


def text(count):
    start = torch.randint(VOCAB - FIRST, (count, 1))
    line = FIRST + (start + 2 * torch.arange(LENGTH - 1)) % (VOCAB - FIRST)
    return torch.cat([torch.full((count, 1), CLS), line], 1)


torch.manual_seed(71)
loader = torch.utils.data.DataLoader(text(192), batch_size=32, shuffle=True, collate_fn=Collator())
model = MaskedLM()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
history = []
for epoch in range(14):
    for ids, labels, picked in loader:
        logits = model(ids)
        loss = F.cross_entropy(logits[picked], labels[picked])  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    history.append(loss.item())
    print("epoch", epoch, "loss", round(loss.item(), 4))
