# /// case
# title = "The reference model is a shallow copy and shares every parameter with the policy"
# category = "identity"
# kind = "shared-reference-model"
# kinds_also_ok = ["shallow-copy-of-model", "reference-aliases-policy", "aliased-parameters", "missing-deepcopy"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["reference", "policy", "copy"]
# symptom = "the loss stays at log 2 and the accuracy at 0"
# symptom_check = "max(abs(value - 0.693147) for value in losses) < 1e-4"
# cause = "copy.copy of a module copies the references to its children; the reference moves with the policy."
# fix = "copy.deepcopy"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Policy(nn.Module):
    def __init__(self, vocab=32, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab)

    def logits(self, ids):
        return self.lm_head(self.rnn(self.embed(ids))[0])

    def sequence_logps(self, ids, prompt_length):
        logps = self.logits(ids[:, :-1]).log_softmax(-1)
        chosen = logps.gather(-1, ids[:, 1:, None]).squeeze(-1)
        return chosen[:, prompt_length - 1:].sum(-1)


class DPOTrainer:
    def __init__(self, policy, beta=0.2, lr=2e-3):
        self.policy = policy
        self.reference = copy.copy(policy)  #- here
#+         self.reference = copy.deepcopy(policy)
        self.beta = beta
        self.optimizer = torch.optim.AdamW(policy.parameters(), lr=lr, weight_decay=0.0)

    def loss(self, chosen, rejected, prompt_length):
        margin = self.policy.sequence_logps(chosen, prompt_length) - self.policy.sequence_logps(rejected, prompt_length)
        with torch.no_grad():
            anchor = self.reference.sequence_logps(chosen, prompt_length) - self.reference.sequence_logps(rejected, prompt_length)  #! also
        reward = self.beta * (margin - anchor)  #! also
        return -F.logsigmoid(reward).mean(), (reward > 0).float().mean()

    def step(self, batch):
        loss, accuracy = self.loss(*batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()  #! also
        return loss.item(), accuracy.item()


def sft(policy, steps=30):
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    for _ in range(steps):
        ids = (torch.randint(32, (32, 1)) + torch.randint(1, 3, (32, 1)) * torch.arange(10)) % 32
        loss = F.cross_entropy(policy.logits(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return policy


def preferences(count, prompt_length=4):
    start = torch.randint(32, (count, 1))
    prompt = (start + torch.arange(prompt_length)) % 32
    liked = (start + prompt_length + torch.arange(6)) % 32
    disliked = (start + prompt_length + 2 * torch.arange(6)) % 32
    return torch.cat([prompt, liked], 1), torch.cat([prompt, disliked], 1), prompt_length


torch.manual_seed(88)
trainer = DPOTrainer(sft(Policy()))
losses, accuracies = zip(*(trainer.step(preferences(24)) for _ in range(30)))
print("loss", losses[0], losses[-1], "accuracy", accuracies[-1])
