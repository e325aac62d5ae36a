# /// case
# title = "The freeze loop covers the whole model instead of the backbone"
# category = "requires-grad"
# kind = "all-parameters-frozen"
# severity = "error"
# names = ["clf"]
# difficulty = "easy"
# symptom = "RuntimeError: element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "element 0 of tensors does not require grad"
# cause = "after the loop no parameter requires grad, so the loss has no graph"
# fix = "freeze clf.trunk.parameters() only"
# evidence = [
#     { url = "https://github.com/hiyouga/LlamaFactory/issues/4905" },
#     { url = "https://github.com/davidmascharka/tbd-nets/issues/8" },
# ]
# ///
import torch
from torch import nn, optim


class Classifier(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.trunk(x))


torch.manual_seed(0)
clf = Classifier()
for prm in clf.parameters():  #- also
#+ for prm in clf.trunk.parameters():
    prm.requires_grad_(False)  #! here
sgd = optim.SGD(clf.head.parameters(), lr=0.1)
xs, ys = torch.randn(40, 10), torch.randint(0, 3, (40,))
for _ in range(4):
    sgd.zero_grad()
    nn.functional.cross_entropy(clf(xs), ys).backward()  #! also
    sgd.step()
