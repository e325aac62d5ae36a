# /// case
# title = "state_dict().copy() copies the dictionary and not the tensors"
# category = "identity"
# kind = "state-dict-alias"
# kinds_also_ok = ["copy-is-alias"]
# severity = "warning"
# names = ["best", "state_dict"]
# symptom = "the kept tensors share memory with the live parameters"
# symptom_check = 'stopper.best["weight"].data_ptr() == net.weight.data_ptr()'
# cause = "dict.copy is shallow"
# fix = "clone each tensor"
# evidence = [
#     { url = "https://github.com/WMD-group/SMACT/pull/601", title = "feat: add property prediction module with pretrained ROOST band gap model" },
#     { url = "https://github.com/sicara/easy-few-shot-learning/pull/129", title = "Adding deepcopy to best_state deriving" },
# ]
# ///
import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience=3):
        self.patience, self.bad, self.score, self.best = patience, 0, None, None

    def __call__(self, score, module):
        if self.score is None or score < self.score:
            self.score, self.bad = score, 0
            self.best = module.state_dict().copy()  #- here
#+             self.best = {k: v.detach().clone() for k, v in module.state_dict().items()}
        else:
            self.bad += 1
        return self.bad >= self.patience


torch.manual_seed(6)
net = nn.Linear(8, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.2)
train, valid = torch.randn(32, 8), torch.randn(32, 8)
stopper = EarlyStopping()
for epoch in range(20):
    sgd.zero_grad()
    (net(train).squeeze(1) - train[:, 0]).pow(2).mean().backward()
    sgd.step()  #! also
    with torch.no_grad():
        score = (net(valid).squeeze(1) - valid[:, 0]).pow(2).mean().item()
    if stopper(score, net):
        break
net.load_state_dict(stopper.best)  #! also
