# /// case
# title = "Masked loss is divided by the padded length"
# category = "loss-wiring"
# kind = "masked-mean-wrong-denominator"
# severity = "warning"
# names = ["mask", "nll", "loss"]
# difficulty = "hard"
# symptom = "Loss and gradients are too small by the padding fraction and depend on the longest sequence of the batch; silent."
# symptom_check = "curve[0] < 1.2"
# cause = "(nll * mask).mean() divides by batch x max_len and not by the number of real tokens."
# fix = "Divide by mask.sum()."
# evidence = [{ url = "https://github.com/d2l-ai/d2l-en/issues/2076" }, { url = "https://github.com/tracel-ai/burn/issues/5568" }]
# ///
"""Seq2seq copy task with teacher forcing and padded targets."""
import torch
import torch.nn.functional as F
from torch import nn

PAD, BOS, VOCAB = 0, 1, 12


class Seq2Seq(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.src_emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.proj = nn.Linear(dim, VOCAB)

    def forward(self, src, lengths, tgt_in):
        packed = nn.utils.rnn.pack_padded_sequence(self.src_emb(src), lengths, batch_first=True, enforce_sorted=False)
        _, state = self.encoder(packed)
        out, _ = self.decoder(self.tgt_emb(tgt_in), state)
        return self.proj(out)


def collate(n=16, short=2, long=14):
    lengths = torch.randint(short, 6, (n,))
    lengths[0] = long
    src = torch.full((n, long), PAD)
    for i, k in enumerate(lengths.tolist()):
        src[i, :k] = torch.randint(2, VOCAB, (k,))
    tgt_in = torch.cat([torch.full((n, 1), BOS), src[:, :-1]], 1)
    return src, lengths, tgt_in


def sequence_loss(logits, target):
    nll = F.cross_entropy(logits.transpose(1, 2), target, reduction="none")
    mask = (target != PAD).float()
    return (nll * mask).mean()  #- here
#+     return (nll * mask).sum() / mask.sum()


torch.manual_seed(0)
model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
curve = []
for step in range(14):
    src, lengths, tgt_in = collate()
    loss = sequence_loss(model(src, lengths, tgt_in), src)  #! here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.append(loss.item())
print(curve[0], curve[-1])
