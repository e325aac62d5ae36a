# /// case
# title = "Sequences are sorted by length, the labels are not"
# category = "data"
# kind = "data-label-misalignment"
# kinds_also_ok = ["output-order-wrong"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["order", "h"]
# symptom = "the output's rows belong to other sequences than the labels"
# symptom_check = "not torch.allclose(model(sequences[:8])[3], model([sequences[3]])[0], atol=1e-5)"
# cause = "the order is not undone"
# fix = "index with order.argsort()"
# ///
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence


class Tagger(nn.Module):
    def __init__(self, vocab=25, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.score = nn.Linear(dim, 2)

    def forward(self, sequences):
        lengths = torch.tensor([len(s) for s in sequences])
        padded = pad_sequence(sequences, batch_first=True)
        lengths, order = lengths.sort(descending=True)  #! also
        packed = pack_padded_sequence(self.embed(padded[order]), lengths, batch_first=True)  #! also
        _, h = self.gru(packed)
        return self.score(h[-1])  #- here
#+         return self.score(h[-1][order.argsort()])


torch.manual_seed(67)
sequences = [torch.randint(1, 25, (int(n),)) for n in torch.randint(3, 15, (64,))]
labels = torch.tensor([int((s > 18).float().mean() > 0.25) for s in sequences])
model = Tagger()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(10):
    for i in range(0, 64, 16):
        loss = nn.functional.cross_entropy(model(sequences[i:i + 16]), labels[i:i + 16])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
model.eval()
