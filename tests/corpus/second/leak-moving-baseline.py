# /// case
# title = "A moving-average tensor is updated from the loss with its history and used in the next loss"
# category = "retention-leak"
# kind = "graph-carried-across-steps"
# severity = "error"
# names = ["baseline"]
# difficulty = "medium"
# symptom = "RuntimeError: Trying to backward through the graph a second time, in iteration 2"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "baseline links iteration t to the freed graph of iteration t-1"
# fix = "baseline = 0.9 * baseline + 0.1 * loss.detach()"
# evidence = [
#     { url = "https://discuss.pytorch.org/t/runtimeerror-trying-to-backward-through-the-graph-a-second-time-but-the-buffers-have-already-been-freed-specify-retain-graph-true-when-calling-backward-the-first-time/6795/2" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(10)
tracker = nn.Linear(5, 1)
opt = torch.optim.SGD(tracker.parameters(), lr=0.02)
baseline = torch.zeros(())
for t in range(6):
    obs = torch.randn(32, 5)
    err = (tracker(obs).squeeze(-1) - obs.sum(1)).pow(2).mean()
    objective = err + 0.5 * (err - baseline).pow(2)
    opt.zero_grad()
    objective.backward()  #! also
    opt.step()
    baseline = 0.9 * baseline + 0.1 * err  #- here
#+     baseline = 0.9 * baseline + 0.1 * err.detach()
print(baseline.item())
