# /// case
# category = "gradient"
# kind = "dead-activation"
# severity = "warning"
# names = ["dose", "clamp"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
with torch.no_grad():
    policy[2].bias.fill_(300.0)  #- also
#+     policy[2].bias.fill_(0.5)
optimizer = torch.optim.SGD(policy.parameters(), lr=1e-3)
for step in range(5):
    patients = torch.randn(24, 4)
    wanted = patients.sum(1, keepdim=True).sigmoid()
    dose = policy(patients).clamp(0.0, 1.0)  #! here
    loss = nn.functional.mse_loss(dose, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
