# /// case
# title = "Attack is called inside the no_grad block of the evaluation"
# category = "higher-order"
# kind = "root-without-history"
# kinds_also_ok = ["grad-mode-left-off", "graph-break-no-grad"]
# severity = "error"
# names = ["no_grad", "perturb", "evaluate_robust"]
# symptom = "RuntimeError: element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "does not require grad and does not have a grad_fn"
# cause = "the attack needs gradients and runs under no_grad"
# fix = "enable_grad() around the attack"
# evidence = [
#     { url = "https://github.com/BorealisAI/advertorch/issues/79", title = "Adversarial training works well but Attacking the Network throws errors" },
#     { url = "https://github.com/Trusted-AI/adversarial-robustness-toolbox/issues/498", title = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class LinfPGD:
    def __init__(self, predict, eps=0.1, eps_iter=0.03, nb_iter=4):
        self.predict, self.eps, self.eps_iter, self.nb_iter = predict, eps, eps_iter, nb_iter

    def perturb(self, x, y):
        delta = torch.zeros_like(x, requires_grad=True)
        for _ in range(self.nb_iter):
            loss = F.cross_entropy(self.predict(x + delta), y)  #! also
            loss.backward()  #! also
            delta.data = (delta.data + self.eps_iter * delta.grad.sign()).clamp(-self.eps, self.eps)
            delta.grad.zero_()
        return (x + delta.data).clamp(0, 1)


def train_epoch(net, loader, optimizer, adversary):
    net.train()
    for x, y in loader:
        x_adv = adversary.perturb(x, y)
        optimizer.zero_grad()
        F.cross_entropy(net(x_adv), y).backward()
        optimizer.step()


def evaluate_robust(net, loader, adversary):
    net.eval()
    clean_right = robust_right = 0
    with torch.no_grad():  #! here
        for x, y in loader:
            clean_right += (net(x).argmax(1) == y).sum().item()
            x_adv = adversary.perturb(x, y)  #- here
#+             with torch.enable_grad():
#+                 x_adv = adversary.perturb(x, y)
            robust_right += (net(x_adv).argmax(1) == y).sum().item()
    return clean_right, robust_right


torch.manual_seed(4)
net = nn.Sequential(nn.Flatten(), nn.Linear(36, 20), nn.ReLU(), nn.Linear(20, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = [(torch.rand(8, 1, 6, 6), torch.randint(0, 4, (8,))) for _ in range(3)]
adversary = LinfPGD(net)
train_epoch(net, loader, optimizer, adversary)
print(evaluate_robust(net, loader, adversary))
