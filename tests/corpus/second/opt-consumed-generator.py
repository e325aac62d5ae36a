# /// case
# title = "The parameters() generator is consumed by a count before the optimizer gets it"
# category = "optimizer-wiring"
# kind = "empty-parameter-list"
# severity = "error"
# names = ["params"]
# difficulty = "medium"
# symptom = "ValueError: optimizer got an empty parameter list"
# raises = "ValueError"
# raises_message = "optimizer got an empty parameter list"
# cause = "model.parameters() is a generator: iterating it empties it"
# fix = "params = list(model.parameters())"
# evidence = [
#     { url = "https://github.com/PixArt-alpha/PixArt-alpha/pull/160" },
#     { url = "https://github.com/pytorch/pytorch/issues/148259" },
#     { url = "https://github.com/pytorch/pytorch/issues/51794" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)
rnn = nn.GRU(4, 8, batch_first=True)
params = rnn.parameters()  #- also
#+ params = list(rnn.parameters())
total = sum(p.numel() for p in params)
print("trainable", total)
opt = torch.optim.Adam(params, lr=1e-3)  #! here
seq = torch.randn(3, 6, 4)
out, _ = rnn(seq)
opt.zero_grad()
out.square().mean().backward()
opt.step()
