# /// case
# category = "gradient"
# kind = "grad-assigned-mismatch"
# severity = "error"
# names = ["mean_grad"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
replicas = [nn.Linear(3, 2) for _ in range(3)]
for replica in replicas:
    replica(torch.randn(4, 3)).sum().backward()
server = nn.Linear(3, 2)
for name, parameter in server.named_parameters():
    grads = [dict(replica.named_parameters())[name].grad for replica in replicas]
    mean_grad = torch.stack(grads).mean()  #-
#+     mean_grad = torch.stack(grads).mean(0)
    parameter.grad = mean_grad  #! here
print(server.weight.grad)
