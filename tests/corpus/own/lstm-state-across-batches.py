# /// case
# category = "graph"
# kind = "graph-carried-across-steps"
# severity = "error"
# names = ["state", "hidden"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(2, 8, batch_first=True)
        self.out = nn.Linear(8, 1)

    def forward(self, x, state=None):
        y, state = self.rnn(x, state)
        return self.out(y[:, -1]), state


net = Forecaster()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
state = None
for window in torch.randn(3, 4, 10, 2):
    prediction, state = net(window, state)  #! here
    loss = (prediction - window[:, -1, :1]).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
#+     state = tuple(s.detach() for s in state)
print(loss.item())
