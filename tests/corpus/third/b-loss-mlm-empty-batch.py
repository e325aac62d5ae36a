# /// case
# title = "Masked mean over an empty selection gives NaN"
# category = "loss-wiring"
# kind = "loss-mean-of-empty"
# severity = "warning"
# severity_by_writer = "error"
# names = ["masked", "loss", "nll"]
# difficulty = "hard"
# symptom = "Loss becomes NaN at some step and all parameters are NaN afterwards; no exception."
# symptom_check = "losses[-1] != losses[-1]"
# cause = "With short sequences and 15 % masking some batches contain no masked token; the masked mean is then 0/0 in the forward and in the backward."
# fix = "Clamp the denominator to at least 1 (or skip such a batch)."
# evidence = [{ url = "https://github.com/KevinMusgrave/pytorch-metric-learning/issues/107" }, { url = "https://github.com/tensorflow/addons/issues/2447" }]
# ///
# Masked-token pretraining of a bidirectional GRU on short sequences.
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, MASK = 16, 15


def corrupt(tokens, rate=0.15):
    masked = torch.rand(tokens.shape) < rate  #! here
    return tokens.masked_fill(masked, MASK), masked.float()


class MaskedModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, VOCAB)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def stream(n_batches, batch=4, length=4):
    for _ in range(n_batches):
        start = torch.randint(0, 15, (batch, 1))
        yield (start + torch.arange(length)) % 15


torch.manual_seed(12)
model = MaskedModel()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for tokens in stream(50):
    inputs, masked = corrupt(tokens)  #! also
    nll = F.cross_entropy(model(inputs).transpose(1, 2), tokens, reduction="none")
    loss = (nll * masked).sum() / masked.sum()  #- here
#+     loss = (nll * masked).sum() / masked.sum().clamp(min=1)
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()  #! also
    losses.append(loss.item())
print(losses[0], losses[-1])
