# /// case
# title = "External memory filled through .data: the writer network never trains"
# category = "assignment-cut"
# kind = "graph-break-data"
# kinds_also_ok = ["graph-break-detach", "parameter-never-used", "gradient-never-arrives"]
# severity = "warning"
# names = ["slots", "writer"]
# symptom = "every gradient of the writer is None"
# symptom_check = "all(p.grad is None for p in writer.parameters())"
# cause = ".data.copy_ stores values only"
# fix = "build the memory out of tracked tensors"
# evidence = [
#     { url = "https://github.com/KanishJebaMathewM/Truxify/issues/13118", title = "MAML inner-loop `param.data -=` detaches the graph — the meta-model never trains" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(3)
writer, reader = nn.Linear(6, 8), nn.Linear(8, 6)
optimizer = torch.optim.Adam([*writer.parameters(), *reader.parameters()], lr=1e-2)


def recall(sequence):
    slots = torch.zeros(sequence.size(0), 8)  #-
    for t, item in enumerate(sequence):  #-
        slots[t].data.copy_(writer(item))  #- here
#+     slots = torch.stack([writer(item) for item in sequence])
    weights = torch.softmax(slots @ slots.t() / 8**0.5, dim=-1)
    return reader(weights @ slots)


for i in range(20):
    seq = torch.randn(5, 6)
    loss = (recall(seq) - seq).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
