# /// case
# title = "Some rows of the attention are masked completely with -inf"
# category = "numerics"
# kind = "softmax-of-all-masked-row"
# kinds_also_ok = ["nan-gradient", "masked-softmax-nan"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["masked_fill", "softmax", "scores"]
# symptom = "softmax of a row of -inf is NaN and spreads to all parameters"
# symptom_check = "any(p.isnan().any().item() for p in reader.parameters())"
# cause = "empty documents leave no key to attend to"
# fix = "a large finite number"
# ///
import torch
import torch.nn as nn


class CrossReader(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.out = nn.Linear(dim, classes)

    def forward(self, question, document, valid):
        q, k, v = self.q(question), self.k(document), self.v(document)
        scores = torch.einsum("bd,btd->bt", q, k) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~valid, float("-inf"))  #- here
#+         scores = scores.masked_fill(~valid, -1e9)
        context = torch.einsum("bt,btd->bd", scores.softmax(dim=-1), v)  #! also
        return self.out(torch.tanh(context + q))


def batch(n=12, length=5, dim=8):
    lengths = torch.randint(0, length + 1, (n,))
    lengths[0] = 0
    valid = torch.arange(length) < lengths[:, None]
    document = torch.randn(n, length, dim) * valid.unsqueeze(-1)
    return torch.randn(n, dim), document, valid, lengths.clamp(max=2)


torch.manual_seed(88)
reader = CrossReader(8, 3)
optimizer = torch.optim.Adam(reader.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for step in range(8):
    *inputs, label = batch()
    optimizer.zero_grad()
    loss = criterion(reader(*inputs), label)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
