# /// case
# title = "The hand-written gradient of a weighted loss forgets the weight of the second term"
# category = "function"
# kind = "wrong-custom-gradient"
# kinds_also_ok = ["custom-backward-wrong-formula"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backward", "QuantileLoss", "tau"]
# symptom = "gradcheck fails"
# symptom_check = "not torch.autograd.gradcheck(lambda p: QuantileLoss.apply(p, torch.zeros(4, dtype=torch.float64), 0.9), (torch.tensor([1.0, -1.0, 2.0, -0.5], dtype=torch.float64, requires_grad=True),), raise_exception=False)"
# cause = "for predictions above the target the slope is 1 - tau"
# fix = "the right slope"
# ///
import torch
import torch.nn as nn


class QuantileLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, prediction, target, tau):
        error = target - prediction
        ctx.save_for_backward(error)
        ctx.tau = tau
        return torch.maximum(tau * error, (tau - 1) * error).mean()

    @staticmethod
    def backward(ctx, grad_out):
        error, = ctx.saved_tensors
        above, below = torch.full_like(error, -ctx.tau), torch.ones_like(error)  #- here
#+         above, below = torch.full_like(error, -ctx.tau), torch.full_like(error, 1 - ctx.tau)
        slope = torch.where(error > 0, above, below)  #! also
        return grad_out * slope / error.numel(), None, None  #! also


def quantile_loss(prediction, target, tau=0.9):
    return QuantileLoss.apply(prediction, target, tau)


class DemandForecaster(nn.Module):
    def __init__(self, window, hidden=12):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)
        self.window = window

    def forward(self, history):
        states, _ = self.lstm(history.unsqueeze(-1))
        return self.out(states[:, -1]).squeeze(-1)


torch.manual_seed(97)
series = torch.sin(torch.arange(90) * 0.4) + 0.3 * torch.randn(90)
windows = series.unfold(0, 9, 1)
history, following = windows[:, :8], windows[:, 8]
model = DemandForecaster(8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for rows in torch.randperm(len(windows)).split(20):
        loss = quantile_loss(model(history[rows]), following[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    covered = (following < model(history).detach()).float().mean().item()
    print(epoch, loss.item(), covered)
