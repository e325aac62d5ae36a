# /// case
# title = 'State carried over and retain_graph=True "to fix it": weights changed by step() break the second backward'
# category = "rnn-state"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["h"]
# difficulty = "hard"
# symptom = "RuntimeError: ... modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "the old graph needs the old weights; optimizer.step() changed them in place"
# fix = "h = h.detach() and no retain_graph"
# evidence = [
#     { url = "https://blog.youkuaiyun.com/windhawk_fly/article/details/143405685" },
#     { url = "https://github.com/pytorch/pytorch/issues/90158" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(6)
cell = nn.GRUCell(3, 10)
read = nn.Linear(10, 1)
opt = torch.optim.SGD([*cell.parameters(), *read.parameters()], lr=0.01)
stream = torch.randn(40, 5, 3)
h = torch.zeros(5, 10)
for chunk in stream.split(8):  #! also
#+     h = h.detach()
    err = 0.0
    for frame in chunk:  #! also
        h = cell(frame, h)  #! also
        err = err + (read(h) - frame[:, :1]).pow(2).mean()
    opt.zero_grad()
    err.backward(retain_graph=True)  #- here
#+     err.backward()
    opt.step()
print(err.item())
