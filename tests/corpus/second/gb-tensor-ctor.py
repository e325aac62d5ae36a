# /// case
# title = "Scores collected with torch.tensor([...]) lose their history"
# category = "graph-break"
# kind = "graph-break-new-tensor"
# severity = "warning"
# names = ["scores", "scorer"]
# difficulty = "medium"
# symptom = "silent: the scorer's parameters keep grad None (torch warns about converting a tensor with requires_grad to a scalar)"
# symptom_check = "all(p.grad is None for p in scorer.parameters())"
# warns = "Converting a tensor with requires_grad=True to a scalar"
# cause = "torch.tensor copies values"
# fix = "torch.stack / torch.cat"
# evidence = [
#     { url = "https://github.com/speechbrain/speechbrain/issues/735" },
#     { url = "https://github.com/pytorch/pytorch/issues/7335" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch.nn import Linear, Sequential, Tanh

torch.manual_seed(8)
scorer = Sequential(Linear(6, 10), Tanh(), Linear(10, 1))
opt = torch.optim.SGD(scorer.parameters(), lr=0.1)
candidates = [torch.randn(6) for _ in range(5)]
best = torch.tensor(2)

for step in range(4):
    raw = [scorer(c).squeeze() for c in candidates]
    scores = torch.tensor([float(r) for r in raw], requires_grad=True)  #- here
#+     scores = torch.stack(raw)
    rank_loss = F.cross_entropy(scores.unsqueeze(0), best.unsqueeze(0))
    opt.zero_grad()
    rank_loss.backward()
    opt.step()
    print(step, rank_loss.item())
