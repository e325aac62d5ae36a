# /// case
# title = "A Function with two outputs ignores the gradient of the second"
# category = "experiment"
# kind = "custom-function-wrong-gradient"
# kinds_also_ok = ["custom-function-missing-gradient"]
# severity = "warning"
# names = ["backward", "grad_entropy"]
# symptom = "the entropy bonus has no effect on the head's gradient"
# symptom_check = "float(pull.abs().max()) == 0"
# cause = "grad_entropy is not used in backward"
# fix = "add its part"
# evidence = [
#     { url = "https://github.com/huggingface/trl/pull/6625", title = "Fix missing entropy gradient in _ChunkedLogProbFunction backward" },
# ]
# ///
import torch
from torch import nn


class LogProbEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels):
        logp = logits.log_softmax(-1)
        p = logp.exp()
        entropy = -(p * logp).sum(-1)
        ctx.save_for_backward(logp, labels, entropy)
        return logp.gather(-1, labels[:, None]).squeeze(-1), entropy

    @staticmethod
    def backward(ctx, grad_logprob, grad_entropy):
        logp, labels, entropy = ctx.saved_tensors
        p = logp.exp()
        grad = -p * grad_logprob[:, None]
        grad.scatter_add_(1, labels[:, None], grad_logprob[:, None])
#+         grad = grad - grad_entropy[:, None] * p * (logp + entropy[:, None])
        return grad, None  #! here


torch.manual_seed(8)
head = nn.Linear(6, 9)
opt = torch.optim.Adam(head.parameters(), lr=1e-3)
for _ in range(6):
    hidden, actions, adv = torch.randn(20, 6), torch.randint(0, 9, (20,)), torch.randn(20)
    logprob, entropy = LogProbEntropy.apply(head(hidden), actions)  #! also
    (pull,) = torch.autograd.grad(entropy.mean(), head.weight, retain_graph=True)
    loss = -(logprob * adv).mean() - 0.05 * entropy.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
