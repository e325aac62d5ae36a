# /// case
# title = "The masked loss is averaged over padding too"
# category = "uncovered"
# kind = "padding-counted-in-mean"
# severity = "warning"
# names = ["mean", "mask"]
# symptom = "the loss is smaller by the share of padding"
# symptom_check = "float(loss.detach()) < 0.9 * float((raw * mask).sum().detach() / mask.sum())"
# cause = "mean() divides by all positions"
# fix = "divide by mask.sum()"
# evidence = [
#     { url = "https://github.com/d2l-ai/d2l-en/issues/2076", title = "MaskedSoftmaxCELoss code wrong" },
#     { url = "https://github.com/DaoyuanLi2816/Molecule-Generator/pull/20", title = "Ignore padding positions in the reconstruction loss" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(2)
PAD = 0
gru, table, out = nn.GRU(8, 16, batch_first=True), nn.Embedding(12, 8, padding_idx=PAD), nn.Linear(16, 12)
params = [p for m in (gru, table, out) for p in m.parameters()]
opt = torch.optim.Adam(params, lr=1e-3)


def make_batch():
    ids = torch.randint(1, 12, (6, 10))
    for row, n in enumerate([10, 7, 5, 4, 3, 3]):
        ids[row, n:] = PAD
    return ids


for _ in range(6):
    ids = make_batch()
    hidden, _state = gru(table(ids[:, :-1]))
    target = ids[:, 1:]
    raw = nn.functional.cross_entropy(out(hidden).transpose(1, 2), target, reduction="none")
    mask = (target != PAD).float()
    loss = (raw * mask).mean()  #- here
#+     loss = (raw * mask).sum() / mask.sum()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
