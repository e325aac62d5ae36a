# /// case
# title = "Meta-learning: gradients are asked for all parameters, but one head is not used by the inner loss"
# category = "higher-order"
# kind = "grad-wrt-unused-input"
# severity = "error"
# names = ["learner"]
# difficulty = "medium"
# symptom = "RuntimeError: One of the differentiated Tensors appears to not have been used in the graph"
# raises = "RuntimeError"
# raises_message = "appears to not have been used in the graph"
# cause = "learner.value does not take part in the inner loss"
# fix = "select the used parameters (or allow_unused=True and handle None)"
# evidence = [
#     { url = "https://github.com/ShiYunyi/Meta-Weight-Net_Code-Optimization/issues/5" },
#     { url = "https://github.com/vmikulik/maml-pytorch/issues/2" },
#     { url = "https://github.com/pytorch/pytorch/issues/73697" },
# ]
# ///
import torch
from torch import nn


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(5, 10)
        self.action = nn.Linear(10, 3)
        self.value = nn.Linear(10, 1)

    def act(self, s):
        return self.action(torch.tanh(self.enc(s)))

    def estimate(self, s):
        return self.value(torch.tanh(self.enc(s)))


torch.manual_seed(0)
learner = Learner()
s, a, ret = torch.randn(12, 5), torch.randint(0, 3, (12,)), torch.randn(12, 1)
inner = nn.functional.cross_entropy(learner.act(s), a)  #- also
#+ inner = nn.functional.cross_entropy(learner.act(s), a) + (learner.estimate(s) - ret).pow(2).mean()
names, weights = zip(*learner.named_parameters())
gs = torch.autograd.grad(inner, weights, create_graph=True)  #! here
fast = {n: w - 0.1 * g for n, w, g in zip(names, weights, gs)}
out = torch.func.functional_call(learner.enc, {k[4:]: v for k, v in fast.items() if k.startswith("enc")}, (s,))
print(out.shape)
