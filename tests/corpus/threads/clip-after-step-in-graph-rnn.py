# /// case
# title = "Clipping after the step"
# category = "uncovered"
# kind = "clip-after-step"
# kinds_also_ok = ["clip-without-effect"]
# severity = "warning"
# names = ["clip_grad_norm_", "step"]
# symptom = "the step uses the unclipped gradient"
# symptom_check = "used > 10.5"
# cause = "clip_grad_norm_ follows step()"
# fix = "before step()"
# evidence = [
#     { url = "https://github.com/VGraphRNN/VGRNN/issues/4", title = "Incorrect use of torch.nn.utils.clip_grad_norm" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(4)
rnn, read = nn.RNN(5, 10), nn.Linear(10, 5)
model = nn.ModuleList([rnn, read])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
clip = 10
used = 0.0


def total_norm():
    return float(torch.stack([p.grad.norm() for p in model.parameters()]).norm())


for epoch in range(5):
    optimizer.zero_grad()
    seq = torch.randn(12, 4, 5) * 20
    states, _ = rnn(seq)
    loss = (read(states) - seq.roll(-1, 0)).pow(2).mean()
    loss.backward()
#+     nn.utils.clip_grad_norm_(model.parameters(), clip)
    used = max(used, total_norm())
    optimizer.step()  #! here
    nn.utils.clip_grad_norm_(model.parameters(), clip)  #- here
    print(epoch, loss.item())
