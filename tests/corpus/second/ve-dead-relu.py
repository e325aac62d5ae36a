# /// case
# title = "A large negative bias kills every ReLU unit"
# category = "vanishing-exploding"
# kind = "dead-relu"
# severity = "warning"
# names = ["hidden"]
# difficulty = "medium"
# symptom = "silent: hidden output all zero, hidden gradients all zero"
# symptom_check = "bool((hidden.weight.grad == 0).all())"
# cause = "pre-activations are always negative"
# fix = "sensible bias init (0), smaller steps, leaky ReLU"
# evidence = [
#     { url = "https://github.com/facebookresearch/dlrm/pull/358" },
#     { url = "https://github.com/allenai/allennlp-as-a-library-example/issues/8" },
#     { url = "https://github.com/jvargasmu/population_estimation/issues/68" },
#     { url = "https://github.com/keras-team/keras/issues/7057" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(1)
hidden = nn.Linear(8, 32)
nn.init.constant_(hidden.bias, -25.0)  #- here
#+ nn.init.constant_(hidden.bias, 0.1)
act = nn.ReLU()
top = nn.Linear(32, 1)
opt = torch.optim.Adam([*hidden.parameters(), *top.parameters()], lr=1e-3)
x = torch.randn(100, 8)
y = x.norm(dim=1, keepdim=True)
for epoch in range(10):
    opt.zero_grad()
    loss = nn.functional.mse_loss(top(act(hidden(x))), y)  #! also
    loss.backward()
    opt.step()
print(loss.item())
