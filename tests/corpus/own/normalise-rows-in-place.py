# /// case
# category = "inplace"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["z", "features"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(5, 3)


def embed(x):
    features = encoder(x).exp()  #! also
    total = features.sum(1, keepdim=True)
    features /= total  #- here
#+     features = features / total
    return features


similarity = embed(torch.randn(4, 5)) @ embed(torch.randn(4, 5)).t()
similarity.diag().sum().backward()  #! also
print(encoder.weight.grad)
