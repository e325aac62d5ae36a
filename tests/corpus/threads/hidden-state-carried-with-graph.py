# /// case
# title = "The LSTM's state is carried over batches with its graph"
# category = "uncovered"
# kind = "graph-carried-across-steps"
# kinds_also_ok = ["second-backward-freed-graph"]
# severity = "error"
# names = ["hidden"]
# symptom = "RuntimeError: Trying to backward through the graph a second time"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "self.hidden keeps the last batch's graph"
# fix = "detach"
# evidence = [
#     { url = "https://github.com/sgadgil6/cnslab_fmri/issues/4", title = "Trying to backward through the graph a second time, but the saved intermediate results have already been freed. Specify retain_graph=True when calling backward the first time." },
#     { url = "https://github.com/yunjey/pytorch-tutorial/issues/90", title = "language model detach(states)" },
# ]
# ///
import torch
from torch import nn


class SeriesLSTM(nn.Module):
    def __init__(self, inputs=3, hidden_dim=8, batch=4):
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden_dim, batch_first=True)
        self.linear = nn.Linear(hidden_dim, 1)
        self.hidden = (torch.zeros(1, batch, hidden_dim), torch.zeros(1, batch, hidden_dim))

    def forward(self, x):
        out, self.hidden = self.lstm(x, self.hidden)  #- here
#+         out, hidden = self.lstm(x, self.hidden)
#+         self.hidden = tuple(h.detach() for h in hidden)
        return self.linear(out[:, -1])


torch.manual_seed(2)
model = SeriesLSTM()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
series = torch.randn(4, 30, 3)
for start in range(0, 30, 6):
    chunk = series[:, start : start + 6]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(chunk), chunk.sum((1, 2)).unsqueeze(1))
    loss.backward()  #! here
    optimizer.step()
