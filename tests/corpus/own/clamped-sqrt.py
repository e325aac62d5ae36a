# /// case
# category = "inplace"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["distance"]
# ///
#-
import torch


class Repulsion(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.points = torch.nn.Parameter(torch.rand(n, 2))

    def forward(self):
        gap = self.points[:, None] - self.points[None]
        distance = (gap.pow(2).sum(-1) + 1e-6).sqrt()  #! also
        distance.clamp_(min=0.1)  #- here
#+         distance = distance.clamp(min=0.1)
        return (1 / distance).triu(1).sum()


torch.manual_seed(0)
field = Repulsion(5)
field().backward()  #! also
print(field.points.grad)
