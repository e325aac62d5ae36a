# /// case
# category = "gradient"
# kind = "grad-read-when-none"
# severity = "error"
# names = ["p", "parameter"]
# ///
#-
import torch
from torch import nn


class Fitter:
    def __init__(self, model, bound):
        self.model, self.bound = model, bound

    def clipped(self):
        for parameter in self.model.parameters():
            parameter.grad.clamp_(-self.bound, self.bound)  #! here

    def fit(self, x, y):
        prediction = self.model(x)
        self.clipped()  #- also
        loss = (prediction - y).abs().mean()
        loss.backward()
#+         self.clipped()
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        return loss.item()


torch.manual_seed(0)
fitter = Fitter(nn.Linear(3, 1), 0.5)
print([fitter.fit(torch.randn(6, 3), torch.randn(6, 1)) for _ in range(3)])
