# /// case
# category = "inplace"
# kind = "inplace-on-leaf-view"
# severity = "error"
# names = ["table", "embedding"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
embedding = nn.Embedding(12, 4)
embedding.weight[0] = 0.0  #- here
#+ with torch.no_grad():
#+     embedding.weight[0] = 0.0
bag = embedding(torch.tensor([[0, 3, 5]])).mean()
bag.backward()
print(embedding.weight.grad[0])
