# /// case
# title = "The padding row of an embedding is zeroed by indexing the parameter"
# category = "in-place"
# kind = "inplace-on-leaf"
# severity = "error"
# names = ["table.weight"]
# difficulty = "easy"
# symptom = "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation"
# raises = "RuntimeError"
# raises_message = "a view of a leaf Variable that requires grad is being used in an in-place operation"
# cause = "writing a view of a leaf under grad mode"
# fix = "with torch.no_grad(): (or padding_idx)"
# evidence = [
#     { url = "https://github.com/Hunter-DDM/knowledge-neurons/issues/14" },
#     { url = "https://github.com/PingoLH/FCHarDNet/issues/61" },
#     { url = "https://github.com/Atcold/NYU-DLSP20/issues/765" },
# ]
# ///
import torch
from torch import nn

PAD = 0
torch.manual_seed(4)
table = nn.Embedding(20, 6)
table.weight[PAD] = 0.0  #- here
#+ with torch.no_grad():
#+     table.weight[PAD] = 0.0
proj = nn.Linear(6, 2)
tokens = torch.randint(0, 20, (5, 7))
logits = proj(table(tokens).sum(1))
nn.functional.cross_entropy(logits, torch.tensor([0, 1, 0, 1, 1])).backward()
print(table.weight.grad.norm())
