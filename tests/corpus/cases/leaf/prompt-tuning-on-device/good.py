"""Soft prompt for a frozen scorer: the prompt's gradient is logged while it is tuned by hand."""
import torch
from torch import nn

torch.manual_seed(1)
device = torch.device("cpu")
scorer = nn.Linear(6, 1).requires_grad_(False)
prompt = torch.zeros(4, 6, dtype=torch.float32, device=device, requires_grad=True)
data = torch.randn(20, 6)
for step in range(3):
    score = scorer(data + prompt.mean(0)).tanh().mean()
    score.backward()
    history = prompt.grad
    print(step, None if history is None else float(history.abs().sum()))
if history is not None:
    print("gradient norm", history.norm().item())
else:
    print("nothing to report")
shown = prompt.grad
scaled = 0.0 if shown is None else shown.sum().item()
print(scaled, shown)
