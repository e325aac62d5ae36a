# /// case
# title = "Gradients are cleared between backward and step"
# category = "optimizer"
# kind = "zero-grad-before-step"
# kinds_also_ok = ["optimizer-step-without-gradients", "misplaced-zero-grad"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "step", "after_backward"]
# symptom = "the step finds no gradients, nothing is trained"
# symptom_check = "len(learner.optimizer.state) == 0"
# cause = "zero_grad comes after backward"
# fix = "clear before backward"
# ///
import torch
import torch.nn as nn


class Learner:
    def __init__(self, net, lr):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=lr)
        self.grad_log = []

    def compute_loss(self, x, y):
        mean, log_var = self.net(x).chunk(2, dim=1)
        return (0.5 * log_var + 0.5 * (y - mean).square() / log_var.exp()).mean()

    def after_backward(self):
        self.grad_log.append(max(p.grad.abs().max().item() for p in self.net.parameters()))

    def run_batch(self, x, y):
#+         self.optimizer.zero_grad()
        loss = self.compute_loss(x, y)
        loss.backward()  #! also
        self.after_backward()
        self.optimizer.zero_grad()  #- here
        self.optimizer.step()  #! also
        return loss.item()


torch.manual_seed(67)
grid = torch.linspace(-2, 2, 48).unsqueeze(1)
response = grid.pow(3) / 4 + 0.2 * grid.abs() * torch.randn_like(grid)
learner = Learner(nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 2)), lr=1e-2)
for epoch in range(4):
    order = torch.randperm(48)
    losses = [learner.run_batch(grid[i], response[i]) for i in order.split(16)]
    print(epoch, sum(losses) / len(losses), learner.grad_log[-1])
