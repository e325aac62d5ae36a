# /// case
# title = "The cells of a learned optimizer are in a Python list"
# category = "optimizer"
# kind = "unregistered-submodule"
# kinds_also_ok = ["parameter-not-in-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["lstms", "append"]
# symptom = "the cells are not among the parameters and are never trained"
# symptom_check = "all(torch.equal(a, b) for a, b in zip(start, meta.lstms[0].parameters()))"
# cause = "a list does not register modules"
# fix = "nn.ModuleList"
# evidence = [
#     { url = "https://github.com/ikostrikov/pytorch-meta-optimizer/issues/11", title = "LSTM weights not optimised" },
#     { url = "https://github.com/pytorch/pytorch/issues/715", title = "Module: parameters are not included if the module is initialized in a list" },
# ]
# ///
import torch
import torch.nn as nn


class MetaOptimizer(nn.Module):
    """Learning to learn by gradient descent by gradient descent."""

    def __init__(self, hidden=10, num_layers=2):
        super().__init__()
        self.linear1 = nn.Linear(1, hidden)
        self.lstms = []  #- here
#+         self.lstms = nn.ModuleList()
        for _ in range(num_layers):
            self.lstms.append(nn.LSTMCell(hidden, hidden))  #! here
        self.linear2 = nn.Linear(hidden, 1)

    def forward(self, grads, state):
        h, new_state = self.linear1(grads), []
        for cell, (hx, cx) in zip(self.lstms, state):
            hx, cx = cell(h, (hx, cx))
            h = hx
            new_state.append((hx, cx))
        return 0.1 * self.linear2(h), new_state

    def reset(self, n, hidden=10):
        return [(torch.zeros(n, hidden), torch.zeros(n, hidden)) for _ in self.lstms]


torch.manual_seed(31)
meta = MetaOptimizer()
start = [p.detach().clone() for p in meta.lstms[0].parameters()]
optimizer = torch.optim.Adam(meta.parameters(), lr=1e-3)  #! also
for episode in range(5):
    w, b = torch.randn(8, 6), torch.randn(8)
    theta, state, total = torch.zeros(6), meta.reset(6), 0.0
    for _ in range(8):
        # gradient of the quadratic, known in closed form
        grads = (w.T @ (w @ theta - b)).detach().view(-1, 1)
        delta, state = meta(grads, state)
        theta = theta + delta.squeeze(1)
        total = total + (w @ theta - b).square().mean()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    print(episode, total.item())
