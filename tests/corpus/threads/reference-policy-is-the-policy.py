# /// case
# title = "DPO whose reference model is the policy itself"
# category = "identity"
# kind = "target-network-alias"
# kinds_also_ok = ["copy-is-alias"]
# severity = "warning"
# names = ["ref", "policy"]
# symptom = "the log-ratio is identically zero, so the loss is log 2 at each step"
# symptom_check = "trainer.ref is trainer.policy"
# cause = "ref = policy"
# fix = "deepcopy and freeze"
# evidence = [
#     { url = "https://github.com/lsdefine/simple_GRPO/issues/3", title = "grpo_ref_split.py +178" },
#     { url = "https://github.com/om-ai-lab/VLM-R1/issues/38", title = "is it a bug in calculating per_token loss?" },
# ]
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn


class DPOTrainer:
    def __init__(self, policy, beta=0.5):
        self.policy, self.beta = policy, beta
        self.ref = policy  #- here
#+         self.ref = copy.deepcopy(policy).requires_grad_(False)
        self.opt = torch.optim.AdamW(policy.parameters(), lr=1e-2)

    def logp(self, model, tokens):
        logits = model(tokens[:, :-1])
        return -F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none").sum(1)

    def step(self, chosen, rejected):
        with torch.no_grad():
            ref = self.logp(self.ref, chosen) - self.logp(self.ref, rejected)  #! also
        ratio = self.logp(self.policy, chosen) - self.logp(self.policy, rejected)
        loss = -F.logsigmoid(self.beta * (ratio - ref)).mean()  #! also
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


torch.manual_seed(2)
policy = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))
trainer = DPOTrainer(policy)
chosen, rejected = torch.randint(0, 12, (8, 6)), torch.randint(0, 12, (8, 6))
print([trainer.step(chosen, rejected) for _ in range(5)], copy.__name__)
