# /// case
# title = "Warm-up factor is computed by integer division"
# category = "optimizer"
# kind = "learning-rate-zero"
# severity = "warning"
# names = ["lr_lambda", "warmup_steps", "step"]
# symptom = "the learning rate is zero in all eight steps"
# symptom_check = "not any(worker.rates)"
# cause = "// gives 0 until the warm-up ends"
# fix = "a true quotient that starts above zero"
# evidence = [
#     { url = "https://github.com/verl-project/verl/issues/3674", title = "Learning is zero for the first iteration when warmup enabled." },
#     { url = "https://github.com/TakuyaShintate/tsts/pull/76", title = "🔧 Fix warmup bug" },
# ]
# ///
from dataclasses import dataclass

import torch
from torch.optim.lr_scheduler import LambdaLR


@dataclass
class OptimConfig:
    lr: float = 5e-3
    lr_warmup_steps: int = 8
    total_training_steps: int = 8


def constant_with_warmup(optimizer, warmup_steps):
    def lr_lambda(step):
        return min(1, step // max(1, warmup_steps))  #- here
#+         return min(1.0, (step + 1) / max(1, warmup_steps))

    return LambdaLR(optimizer, lr_lambda)  #! also


class PolicyWorker:
    def __init__(self, cfg):
        self.policy = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=cfg.lr, weight_decay=0.0)
        self.scheduler = constant_with_warmup(self.optimizer, cfg.lr_warmup_steps)
        self.rates = []

    def update_actor(self, obs):
        dist = torch.distributions.Categorical(logits=self.policy(obs))
        action = dist.sample()
        reward = (action == obs[:, :4].argmax(1)).float()
        loss = -(dist.log_prob(action) * (reward - reward.mean())).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.rates.append(self.scheduler.get_last_lr()[0])
        self.optimizer.step()  #! also
        self.scheduler.step()
        return {"actor/loss": loss.item(), "actor/lr": self.rates[-1]}


torch.manual_seed(58)
cfg = OptimConfig()
worker = PolicyWorker(cfg)
for step in range(cfg.total_training_steps):
    metrics = worker.update_actor(torch.randn(64, 6))
print(metrics)
