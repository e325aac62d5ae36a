# /// case
# title = "NLLLoss on softmax probabilities"
# category = "loss-wiring"
# kind = "nll-without-log"
# severity = "warning"
# names = ["probs"]
# difficulty = "medium"
# symptom = "silent: the loss is negative"
# symptom_check = "loss.item() < 0"
# cause = "NLLLoss expects log-probabilities"
# fix = "log_softmax"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/10033" },
#     { url = "https://github.com/AnubhavGupta3377/Text-Classification-Models-Pytorch/issues/9" },
#     { url = "https://github.com/clvrai/ACGAN-PyTorch/pull/4" },
#     { url = "https://github.com/yanx27/Pointnet_Pointnet2_pytorch/issues/30" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(1)
vocab, dim = 25, 8
model = nn.ModuleDict(dict(emb=nn.Embedding(vocab, dim), cls=nn.Linear(dim, 4)))
opt = torch.optim.SGD(model.parameters(), lr=0.2)
nll = nn.NLLLoss()
tokens, topic = torch.randint(0, vocab, (30, 6)), torch.randint(0, 4, (30,))
for it in range(10):
    pooled = model["emb"](tokens).mean(dim=1)
    probs = model["cls"](pooled).softmax(dim=-1)  #- also
#+     probs = model["cls"](pooled).log_softmax(dim=-1)
    loss = nll(probs, topic)  #! here
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
