# /// case
# title = "The look-ahead mask is flipped: positions see the future"
# category = "uncovered"
# kind = "causal-mask-wrong"
# severity = "warning"
# names = ["mask", "triu"]
# symptom = "changing the last token changes the first outputs"
# symptom_check = "not torch.allclose(model(a)[:, :4], model(b)[:, :4], atol=1e-5)"
# cause = "tril instead of triu is filled with -inf"
# fix = "triu with diagonal 1"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/29546", title = "Flipped look-ahead attention mask for transformer" },
#     { url = "https://github.com/pytorch/examples/issues/649", title = "Transformer Language Model Example Wrong Mask" },
# ]
# ///
import torch
from torch import nn


class CausalLM(nn.Module):
    def __init__(self, vocab=15, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(dim, vocab)

    def mask(self, n):
        full = torch.full((n, n), float("-inf"))
        return torch.tril(full, diagonal=-1)  #- here
#+         return torch.triu(full, diagonal=1)

    def forward(self, ids):
        return self.out(self.encoder(self.embed(ids), mask=self.mask(ids.size(1))))  #! also


torch.manual_seed(1)
model = CausalLM()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(4):
    ids = torch.randint(0, 15, (4, 9))
    logits = model(ids[:, :-1])
    opt.zero_grad()
    nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
    opt.step()
a = torch.randint(0, 15, (1, 6))
b = a.clone()
b[0, 5] = (b[0, 5] + 1) % 15
