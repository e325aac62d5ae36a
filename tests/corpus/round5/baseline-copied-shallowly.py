# /// case
# title = "A shallow copy shares its modules with the original"
# category = "identity"
# kind = "shallow-copy"
# kinds_also_ok = ["alias"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["copy", "ori_model", "pred_model"]
# symptom = "the baseline is trained by the training of the copy"
# symptom_check = "not torch.equal(frozen, baseline_weight)"
# cause = "copy.copy of a module shares its parameters"
# fix = "copy.deepcopy"
# evidence = [
#     { url = "https://github.com/DerrickXuNu/dvrl_pytorch/issues/2", title = "Line 155 in dvrl.py" },
# ]
# ///
import copy

import torch
import torch.nn as nn

torch.manual_seed(61)


class Dvrl:
    """Data valuation: a selector is rewarded for what a predictor gains on validation data."""

    def __init__(self, x, y, x_valid, y_valid, pred_model):
        self.x, self.y, self.x_valid, self.y_valid = x, y, x_valid, y_valid
        self.pred_model = pred_model
        self.selector = nn.Sequential(nn.Linear(x.shape[1] + 1, 16), nn.ReLU(), nn.Linear(16, 1))
        self.optim_s = torch.optim.Adam(self.selector.parameters(), lr=1e-2)
        # the predictor that has seen everything is what the reward compares with
        self.fit(self.pred_model, torch.ones(len(x)), 20)
        self.ori_model = copy.copy(self.pred_model)  #- here
#+         self.ori_model = copy.deepcopy(self.pred_model)

    def fit(self, model, weight, steps):
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            error = (model(self.x).squeeze(1) - self.y).square()
            loss = (weight * error).sum() / weight.sum().clamp(min=1)
            opt.zero_grad()
            loss.backward()
            opt.step()

    @torch.no_grad()
    def score(self, model):
        return (model(self.x_valid).squeeze(1) - self.y_valid).square().mean().item()

    def train(self, iterations=5):
        for _ in range(iterations):
            est = torch.sigmoid(self.selector(torch.cat([self.x, self.y[:, None]], 1))).squeeze(1)
            chosen = torch.bernoulli(est.detach())
            self.fit(self.pred_model, chosen, 5)
            reward = self.score(self.ori_model) - self.score(self.pred_model)  #! also
            log_prob = (chosen * est.clamp(1e-6).log() + (1 - chosen) * (1 - est).clamp(1e-6).log()).sum()
            self.optim_s.zero_grad()
            (-reward * log_prob).backward()
            self.optim_s.step()


w = torch.tensor([1.0, -1.0, 0.5])
x, x_valid = torch.randn(60, 3), torch.randn(40, 3)
y = x @ w
y[:20] += 3 * torch.randn(20)
dvrl = Dvrl(x, y, x_valid, x_valid @ w, nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)))
frozen = dvrl.ori_model[0].weight.detach().clone()
dvrl.train()
baseline_weight = dvrl.ori_model[0].weight.detach()
print((frozen - baseline_weight).abs().max().item())
