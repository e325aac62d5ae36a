# /// case
# title = "LSTM state carried to the next batch with its history"
# category = "rnn-state"
# kind = "graph-carried-across-steps"
# severity = "error"
# names = ["state"]
# difficulty = "easy"
# symptom = "RuntimeError: Trying to backward through the graph a second time"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "the state links batch k+1 to batch k's freed graph"
# fix = "detach the state between batches"
# evidence = [
#     { url = "https://github.com/yunjey/pytorch-tutorial/issues/90" },
#     { url = "https://github.com/pytorch/pytorch/issues/2198" },
#     { url = "https://blog.youkuaiyun.com/windhawk_fly/article/details/143405685" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(4)
VOCAB, HID = 15, 20
emb, lstm, out = nn.Embedding(VOCAB, HID), nn.LSTM(HID, HID, batch_first=True), nn.Linear(HID, VOCAB)
net = nn.ModuleList([emb, lstm, out])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
text = torch.randint(0, VOCAB, (4, 61))
state = None
for i in range(0, 60, 10):
    src, tgt = text[:, i:i + 10], text[:, i + 1:i + 11]
#+     if state is not None:
#+         state = tuple(s.detach() for s in state)
    y, state = lstm(emb(src), state)  #! here
    loss = nn.functional.cross_entropy(out(y).flatten(0, 1), tgt.flatten())
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(loss.item())
