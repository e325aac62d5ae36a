# /// case
# title = "The logarithm of a softmax underflows"
# category = "numerics"
# kind = "log-of-softmax"
# kinds_also_ok = ["log-of-zero", "unstable-log", "nan-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["softmax", "log", "nll"]
# symptom = "the loss is infinite and the parameters become NaN"
# symptom_check = "any(p.isnan().any().item() for p in classifier.parameters())"
# cause = "a probability of zero has no logarithm"
# fix = "log_softmax"
# ///
import torch
import torch.nn as nn


class CosineClassifier(nn.Module):
    def __init__(self, dim, classes, scale=120.0):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(classes, dim))
        self.transform = nn.Linear(dim, dim)
        self.scale = scale

    def forward(self, x):
        x = nn.functional.normalize(self.transform(x), dim=-1)
        w = nn.functional.normalize(self.proxies, dim=-1)
        return self.scale * x @ w.T


def nll(logits, target, smoothing=0.1):
    log_prob = torch.log(torch.softmax(logits, dim=-1))  #- here
#+     log_prob = torch.log_softmax(logits, dim=-1)
    hit = log_prob.gather(1, target.unsqueeze(1)).squeeze(1)
    return -((1 - smoothing) * hit + smoothing * log_prob.mean(dim=1)).mean()  #! also


torch.manual_seed(87)
classifier = CosineClassifier(10, 6)
optimizer = torch.optim.SGD(classifier.parameters(), lr=5e-3)
x, y = torch.randn(72, 10), torch.randint(0, 6, (72,))
for epoch in range(3):
    for rows in torch.randperm(72).split(24):
        loss = nll(classifier(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
