# /// case
# category = "gradient"
# kind = "custom-function-incomplete"
# severity = "error"
# names = ["Reverse"]
# ///
#-
import torch
from torch import nn
from torch.autograd import Function


class Reverse(Function):  #! here
    def forward(self, features):  #-
#+     @staticmethod
#+     def forward(ctx, features):
        return features.view_as(features)

    def backward(self, grad):  #-
#+     @staticmethod
#+     def backward(ctx, grad):
        return -0.3 * grad


torch.manual_seed(0)
extractor, domain = nn.Linear(5, 4), nn.Linear(4, 2)
optimizer = torch.optim.Adam([*extractor.parameters(), *domain.parameters()], lr=1e-3)
for _ in range(2):
    features = extractor(torch.randn(10, 5))
    guess = domain(Reverse()(features))  #- also
#+     guess = domain(Reverse.apply(features))
    loss = nn.functional.cross_entropy(guess, torch.randint(0, 2, (10,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
