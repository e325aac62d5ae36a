# /// case
# title = "Constant initialisation keeps all hidden units equal"
# category = "vanishing-exploding"
# kind = "symmetric-init"
# severity = "warning"
# names = ["constant_", "hidden", "weight"]
# difficulty = "hard"
# symptom = "The network learns, but only as if it had one hidden unit; all rows of the hidden weight stay identical."
# symptom_check = "spread < 1e-5"
# cause = "All weights of a layer start with the same constant; every hidden unit gets the same gradient and symmetry is never broken."
# fix = "Use a random initialisation."
# evidence = [{ url = "https://github.com/wagonhelm/NaNmnist/issues/2" }, { url = "https://github.com/HomericIntelligence/Mnemosyne/pull/1987" }]
# ///
import torch
from torch import nn

torch.manual_seed(0)


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, 0.1)  #- here
#+         nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


hidden = nn.Linear(4, 12)
net = nn.Sequential(hidden, nn.Tanh(), nn.Linear(12, 1))
net.apply(init_weights)  #! here
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)

x = torch.randn(256, 4)
y = (x[:, 0] * x[:, 1]).unsqueeze(1) + x[:, 2:3]
for it in range(100):
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #! also
spread = hidden.weight.std(dim=0).max().item()
print(f"loss {loss.item():.3f}, spread over hidden units {spread:.2e}")
