# /// case
# title = "Micro-batches of different token counts are averaged evenly"
# category = "uncovered"
# kind = "accumulation-not-normalised"
# kinds_also_ok = ["token-mean-accumulation"]
# severity = "warning"
# names = ["loss", "accum"]
# symptom = "the gradient differs from that of the token mean over all sequences"
# symptom_check = "not torch.allclose(lm[1].weight.grad, whole, atol=1e-6)"
# cause = "a mean per micro-batch, divided by their number"
# fix = "sum over tokens, divide by all tokens"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/pull/34191", title = "Fix Gradient Accumulation issue" },
#     { url = "https://github.com/karpathy/nanochat/pull/59", title = "Fix gradient accumulation for variable length sequences" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
lm = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16))
opt = torch.optim.SGD(lm.parameters(), lr=1e-9)
accum = 3
lengths = [4, 19, 2]
for step in range(3):
    window = [torch.randint(0, 16, (1, n + 1)) for n in lengths]
    tokens = sum(lengths)
    opt.zero_grad()
    for ids in window:
        logits = lm(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())  #- here
        (loss / accum).backward()  #- here
#+         loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")
#+         (loss / tokens).backward()
    opt.step()  #! also
every = sum(F.cross_entropy(lm(i[:, :-1]).flatten(0, 1), i[:, 1:].flatten(), reduction="sum") for i in window)
(whole,) = torch.autograd.grad(every / tokens, lm[1].weight)
