# /// case
# category = "leaf"
# kind = "parameter-lost-on-move"
# severity = "warning"
# names = ["table", "Codebook"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Codebook(nn.Module):
    def __init__(self, size, width, dtype=torch.float64):
        super().__init__()
        self.table = nn.Parameter(torch.randn(size, width)).to(dtype)  #- here
#+         self.table = nn.Parameter(torch.randn(size, width).to(dtype))
        self.scale = nn.Parameter(torch.ones(1, dtype=dtype))

    def forward(self, ids):
        return self.table[ids] * self.scale


book = Codebook(10, 4)
opt = torch.optim.SGD(book.parameters(), lr=0.1)
start = book.table.detach().clone()
for _ in range(3):
    opt.zero_grad()
    book(torch.randint(0, 10, (6,))).pow(2).sum().backward(retain_graph=True)
    opt.step()
print(torch.equal(start, book.table), len(list(book.parameters())))
