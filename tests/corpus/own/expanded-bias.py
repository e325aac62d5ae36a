# /// case
# category = "inplace"
# kind = "inplace-on-overlap"
# severity = "error"
# names = ["bias", "rows"]
# ///
#-
import torch

bias = torch.zeros(1, 4)
rows = bias.expand(3, 4)  #- also
#+ rows = bias.expand(3, 4).clone()
rows.add_(torch.arange(12.0).view(3, 4))  #! here
print(rows)
