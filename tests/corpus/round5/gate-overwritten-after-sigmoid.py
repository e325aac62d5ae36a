# /// case
# title = "The gate of the first step is set in the sigmoid's output"
# category = "in-place"
# kind = "in-place-modification"
# severity = "error"
# names = ["gate"]
# symptom = "sigmoid's backward needs its output"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "an entry is assigned in the sigmoid's output"
# fix = "torch.where, or clone first"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/9391", title = "backward pass different behaviors with inplace operation" },
# ]
# ///
import torch
from torch import nn


class GatedMemory(nn.Module):
    """Reads a sequence; a gate says how much of the memory is replaced."""

    def __init__(self, n_in, n_mem):
        super().__init__()
        self.gate, self.write = nn.Linear(n_in, n_mem), nn.Linear(n_in, n_mem)

    def forward(self, seq):
        gate = self.gate(seq).sigmoid()
        # nothing to remember yet: replace everything
        gate[:, 0] = 1.0  #- here
#+         gate = torch.cat([torch.ones_like(gate[:, :1]), gate[:, 1:]], dim=1)
        content = self.write(seq).tanh()
        memory = torch.zeros_like(content[:, 0])
        for t in range(seq.shape[1]):
            memory = gate[:, t] * content[:, t] + (1 - gate[:, t]) * memory
        return memory


torch.manual_seed(17)
reader, answer = GatedMemory(4, 20), nn.Linear(20, 1)
optimizer = torch.optim.RMSprop([*reader.parameters(), *answer.parameters()], lr=1e-3)
for step in range(15):
    seq = torch.randn(16, 12, 4)
    marked = seq[:, :, 0].argmax(1)
    target = seq[torch.arange(16), marked, 1:2]
    loss = (answer(reader(seq)) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
