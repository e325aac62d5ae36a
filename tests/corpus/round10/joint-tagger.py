# /// case
# title = "The loss function's own backward does not use the incoming gradient"
# category = "function"
# kind = "grad-output-ignored"
# kinds_also_ok = ["chain-rule-broken", "wrong-backward-formula", "custom-function-ignores-grad-output"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["grad_output", "residual", "weights"]
# symptom = "the weight of a task has no effect on its gradient: entity counts five times too much"
# symptom_check = "(lambda t: torch.equal(*(torch.autograd.grad(w * SmoothedCrossEntropy.apply(t, torch.tensor([0, 1]), 0.1), t)[0] for w in (1.0, 0.2))))(torch.tensor([[0.3, -1.0, 0.2], [0.0, 0.5, 1.0]], requires_grad=True))"
# cause = "What backward returns must be multiplied by grad_output, which here is the weight of the task."
# fix = "grad_output * residual / n"
# ///
import torch
import torch.nn as nn


class SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, smoothing):
        log_probs = logits.log_softmax(-1)
        classes = logits.size(-1)
        soft = torch.full_like(log_probs, smoothing / classes)
        soft.scatter_add_(-1, target.unsqueeze(-1), torch.full_like(soft[:, :1], 1 - smoothing))
        ctx.save_for_backward(log_probs.exp() - soft)
        return -(soft * log_probs).sum(-1).mean()

    @staticmethod
    def backward(ctx, grad_output):  #! also
        (residual,) = ctx.saved_tensors  #! also
        return residual / residual.size(0), None, None  #- here
#+         return grad_output * residual / residual.size(0), None, None


class JointTagger(nn.Module):
    def __init__(self, vocab=60, dim=24, tags=6, entities=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(2 * dim, tags)
        self.entity = nn.Linear(2 * dim, entities)

    def forward(self, words):
        states = self.lstm(self.embed(words))[0].flatten(0, 1)
        return self.tag(states), self.entity(states)


class JointLoss:
    def __init__(self, weights, smoothing=0.1):
        self.weights, self.smoothing = weights, smoothing

    def __call__(self, outputs, targets):
        parts = {
            name: SmoothedCrossEntropy.apply(logits, target.flatten(), self.smoothing)
            for name, logits, target in zip(self.weights, outputs, targets)
        }
        return sum(self.weights[name] * part for name, part in parts.items()), parts  #! also


torch.manual_seed(27)
words = torch.randint(0, 60, (80, 9))
tags, entities = words % 6, (words + words.roll(1, 1)) // 10 % 4
model = JointTagger()
criterion = JointLoss({"tag": 1.0, "entity": 0.2})
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
for epoch in range(20):
    for rows in torch.randperm(80).split(20):
        loss, parts = criterion(model(words[rows]), (tags[rows], entities[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, {name: round(part.item(), 4) for name, part in parts.items()})
