# /// case
# title = "Hypernetwork output wrapped in nn.Parameter: a new leaf, the generator never learns"
# category = "leaf-nonleaf"
# kind = "graph-cut-by-parameter-wrap"
# severity = "warning"
# names = ["generator", "weight"]
# difficulty = "medium"
# symptom = "silent: every generator parameter keeps grad None and its value"
# symptom_check = "all(p.grad is None for p in generator.parameters())"
# cause = "nn.Parameter(t) makes a new leaf that shares data with t but not its history"
# fix = "use the generated tensor directly (F.linear / functional_call)"
# evidence = [
#     { url = "https://github.com/dotnet/TorchSharp/issues/1323" },
#     { url = "https://github.com/pytorch/examples/issues/277" },
# ]
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(5)
TASK_DIM, IN, OUT = 3, 4, 2
generator = nn.Sequential(nn.Linear(TASK_DIM, 16), nn.Tanh(), nn.Linear(16, IN * OUT))
layer = nn.Linear(IN, OUT)  #-
opt = torch.optim.Adam(generator.parameters(), lr=1e-2)

for step in range(6):
    task = torch.randn(TASK_DIM)
    batch = torch.randn(10, IN)
    wanted = batch[:, :OUT] * task[0]
    flat = generator(task)
    layer.weight = nn.Parameter(flat.view(OUT, IN))  #- here
    out = layer(batch)  #-
#+     weight = flat.view(OUT, IN)
#+     out = F.linear(batch, weight)
    err = F.mse_loss(out, wanted)
    opt.zero_grad()
    err.backward()
    opt.step()  #! also
print("done", err.item())
