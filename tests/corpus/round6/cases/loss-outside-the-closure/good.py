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
    def closure():
        opt.zero_grad()
        loss = (model(t) - y).pow(2).mean()
        loss.backward()
        values.append(loss.item())
        return loss

    loss = opt.step(closure)
    print(outer, loss.item())
