# /// case
# title = "Modulation made of the product of two zero-initialised factors"
# category = "cause"
# kind = "zero-product"
# kinds_also_ok = ["zero-init-no-gradient"]
# severity = "warning"
# names = ["w_out", "w_in"]
# symptom = "the factors' gradients are exactly zero, while the rest trains"
# symptom_check = "float(gen.w_out.abs().max()) == 0 and float(gen.w_in.abs().max()) == 0"
# cause = "both factors are zero"
# fix = "start one of them with small noise"
# evidence = [
#     { url = "https://github.com/KU-VGI/LFS-GAN/issues/2", title = "init w_add_out_dim and w_add_in_dim as zeros will prevent the opponent from performing gradient updates." },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)


class ModulatedGenerator(nn.Module):
    def __init__(self, cin=4, cout=6):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cout, cin) * 0.2)
        self.w_out = nn.Parameter(torch.zeros(cout, 1))  #- here
#+         self.w_out = nn.Parameter(torch.randn(cout, 1) * 1e-2)
        self.w_in = nn.Parameter(torch.zeros(1, cin))  #! here
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, z):
        return F.linear(z, self.weight * (1 + self.w_out @ self.w_in), self.bias)  #! also


gen = ModulatedGenerator()
disc = nn.Linear(6, 1).requires_grad_(False)
optimizer = torch.optim.RMSprop(gen.parameters(), lr=1e-3)
for it in range(15):
    loss = F.softplus(-disc(gen(torch.randn(16, 4)))).mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
