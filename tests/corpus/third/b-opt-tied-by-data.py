# /// case
# title = "Weight tying through .data makes two parameters on one storage"
# category = "optimizer-wiring"
# kind = "tied-weights-not-shared"
# severity = "warning"
# names = ["head", "tok", "weight"]
# difficulty = "hard"
# symptom = "Model trains, but the shared matrix is updated twice per step, each time with half of its gradient information in Adam's statistics; parameter count is too high."
# symptom_check = "model.head.weight is not model.tok.weight and model.head.weight.data_ptr() == model.tok.weight.data_ptr()"
# cause = "head.weight.data = tok.weight.data lets two different Parameters share memory; autograd gives each its own gradient and the optimizer updates the same memory twice."
# fix = "Assign the Parameter itself: self.head.weight = self.tok.weight."
# evidence = [{ url = "https://github.com/mosaicml/examples/pull/11" }, { url = "https://github.com/pytorch/torchtitan/pull/3225" }]
# ///
import torch
import torch.nn.functional as F
from torch import nn


class BigramWithContext(nn.Module):
    """Two previous tokens -> next token, input and output embedding tied."""

    def __init__(self, vocab=30, dim=24):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)  #! also
        nn.init.normal_(self.tok.weight, std=0.05)
        self.head.weight.data = self.tok.weight.data  #- here
#+         self.head.weight = self.tok.weight

    def forward(self, ids):
        h, _ = self.mix(self.tok(ids))
        return self.head(self.norm(h))  #! also


def sample_batch(n=32, t=12, vocab=30):
    start = torch.randint(0, vocab, (n, 1))
    step = torch.randint(1, 4, (n, 1))
    return (start + step * torch.arange(t + 1)) % vocab


torch.manual_seed(0)
model = BigramWithContext()
n_params = sum(p.numel() for p in model.parameters())
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)  #! also
trace = []
for it in range(25):
    ids = sample_batch()
    loss = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #! also
    trace.append(loss.item())
print(n_params, "parameters;", trace[0], "->", trace[-1])
