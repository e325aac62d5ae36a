# /// case
# title = "A recurrent net with large weights is trained without clipping"
# category = "scale"
# kind = "exploding-gradient"
# kinds_also_ok = ["bad-initialization", "missing-gradient-clipping"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["weight_hh", "init", "step"]
# symptom = "gradients in the millions, the loss blows up"
# symptom_check = "not all(norm < 1e3 for norm in norms)"
# cause = "the recurrent matrix has a spectral radius far above one"
# fix = "orthogonal initialization"
# ///
import torch
import torch.nn as nn


class LinearRecurrence(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.weight_ih = nn.Parameter(torch.randn(hidden, n_in) / n_in ** 0.5)
        self.weight_hh = nn.Parameter(torch.empty(hidden, hidden))
        nn.init.normal_(self.weight_hh, std=0.5)  #- here
#+         nn.init.orthogonal_(self.weight_hh, gain=0.9)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, sequence):
        h = sequence.new_zeros(sequence.shape[0], self.weight_hh.shape[0])
        for x in sequence.unbind(dim=1):
            h = torch.relu(x @ self.weight_ih.T + h @ self.weight_hh.T)  #! also
        return self.readout(h)


torch.manual_seed(92)
model = LinearRecurrence(2, 24)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
norms = []
for step in range(10):
    sequence = torch.randn(16, 25, 2)
    target = sequence[:, -3:].sum(dim=(1, 2)).unsqueeze(1)
    loss = (model(sequence) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    norms.append(torch.stack([p.grad.norm() for p in model.parameters()]).norm().item())
    optimizer.step()  #! also
    print(step, loss.item(), norms[-1])
