# /// case
# title = "reduction='none' and backward() on the vector"
# category = "root"
# kind = "backward-on-nonscalar"
# severity = "error"
# names = ["loss", "reduction"]
# symptom = "RuntimeError: grad can be implicitly created only for scalar outputs"
# raises = "RuntimeError"
# raises_message = "grad can be implicitly created only for scalar outputs"
# cause = "the criterion returns a loss per sample"
# fix = "take the mean"
# evidence = [
#     { url = "https://github.com/xxlong0/SparseNeuS/issues/42", title = "RuntimeError: grad can be implicitly created only for scalar outputs" },
#     { url = "https://github.com/linkedin/Liger-Kernel/pull/435", title = 'Fix LigerCrossEntropyLoss Reduction Behavior for "None" Mode' },
# ]
# ///
import torch
from torch import nn


class Focal(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma
        self.bce = nn.BCEWithLogitsLoss(reduction="none")

    def forward(self, logits, target):
        ce = self.bce(logits, target)
        p = torch.exp(-ce)
        return (1 - p) ** self.gamma * ce  #- also
#+         return ((1 - p) ** self.gamma * ce).mean()


torch.manual_seed(0)
net, focal = nn.Linear(5, 1), Focal()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(12, 5)
    y = (x[:, :1] > 0).float()
    sgd.zero_grad()
    loss = focal(net(x), y)  #! also
    loss.backward()  #! here
    sgd.step()
