# /// case
# title = "LBFGS's closure walks back the same loss"
# category = "optimizer"
# kind = "closure-does-not-evaluate"
# kinds_also_ok = ["stale-graph", "graph-walked-twice"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["closure", "retain_graph"]
# symptom = "the closure gives the same loss and gradient however the parameters move"
# symptom_check = "values[0] == values[1] and values[2] == values[3]"
# cause = "the loss is not computed again at the new parameters"
# fix = "compute it in the closure"
# ///
import torch

torch.manual_seed(36)


class Rational(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.p = torch.nn.Parameter(torch.tensor([0.1, 1.0, 0.1]))
        self.q = torch.nn.Parameter(torch.tensor([0.3]))

    def forward(self, t):
        top = self.p[0] + self.p[1] * t + self.p[2] * t ** 2
        return top / (1 + (self.q * t) ** 2)


model = Rational()
t = torch.linspace(-2, 2, 60)
y = torch.tanh(2 * t)
opt = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=8)
values = []
for outer in range(6):
    loss = (model(t) - y).pow(2).mean()  #- here
#-
    def closure():
        opt.zero_grad()
        loss.backward(retain_graph=True)  #- also
#+         loss = (model(t) - y).pow(2).mean()
#+         loss.backward()
        values.append(loss.item())
        return loss

    opt.step(closure)  #-
#+     loss = opt.step(closure)
    print(outer, loss.item())
