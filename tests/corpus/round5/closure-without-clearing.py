# /// case
# title = "The closure for LBFGS does not clear the gradients"
# category = "accumulation"
# kind = "closure-without-zero-grad"
# kinds_also_ok = ["missing-zero-grad"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["closure", "zero_grad", "LBFGS"]
# symptom = "evaluations within a step add up their gradients"
# symptom_check = "max(ratio) > 1.5"
# cause = "zero_grad is called once per step, but the closure runs many times"
# fix = "clear in the closure"
# evidence = [
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/pull/6147", title = "Call `optimizer.zero_grad()` before backward inside closure in AutoOpt" },
#     { url = "https://github.com/skorch-dev/skorch/issues/636", title = "Issue with LBGFS optimizer: `optimizer_.zero_grad` no longer called inside of `train_step_single`" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(21)


class WeibullRegression(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.scale, self.shape = nn.Linear(n_features, 1), nn.Parameter(torch.zeros(1))

    def forward(self, x, t):
        k = self.shape.exp()
        z = t.log() - self.scale(x).squeeze(-1)
        return -(self.shape + (k - 1) * z - (k * z).exp() - self.scale(x).squeeze(-1)).mean()


class Net:
    """Fits with any optimizer, also with those that evaluate several times in a step."""

    def __init__(self, module, optimizer, **kwargs):
        self.module_ = module
        self.optimizer_ = optimizer(module.parameters(), **kwargs)
        self.ratios = []

    def train_step(self, x, t):
        def step_fn():
#+             self.optimizer_.zero_grad()
            loss = self.module_(x, t)
            own = torch.autograd.grad(loss, self.module_.shape, retain_graph=True)[0]
            loss.backward()  #! also
            self.ratios.append((self.module_.shape.grad / own).abs().item())
            return loss

        self.optimizer_.zero_grad()  #- here
        return self.optimizer_.step(step_fn).item()

    def fit(self, x, t, max_epochs=3):
        for epoch in range(max_epochs):
            print(epoch, self.train_step(x, t))
        return self


x = torch.randn(200, 3)
t = (x @ torch.tensor([0.5, -0.3, 0.2])).exp() * (-torch.rand(200).clamp(1e-3, 0.999).log()) ** 0.7
net = Net(WeibullRegression(3), torch.optim.LBFGS, lr=0.1, max_iter=6).fit(x, t)
ratio = net.ratios
print(max(ratio))
