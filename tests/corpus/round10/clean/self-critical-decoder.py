import torch
import torch.nn as nn
from torch.distributions import Categorical


class Decoder(nn.Module):
    def __init__(self, vocab=14, width=32):
        super().__init__()
        self.vocab = vocab
        self.embed = nn.Embedding(vocab + 1, width)
        self.cell = nn.GRUCell(width, width)
        self.topic = nn.Embedding(4, width)
        self.out = nn.Linear(width, vocab)

    def rollout(self, topic, length, greedy=False):
        state = self.topic(topic)
        token = torch.full_like(topic, self.vocab)
        tokens, log_probs, entropies = [], [], []
        for _ in range(length):
            state = self.cell(self.embed(token), state)
            policy = Categorical(logits=self.out(state))
            token = policy.probs.argmax(-1) if greedy else policy.sample()
            tokens.append(token)
            log_probs.append(policy.log_prob(token))
            entropies.append(policy.entropy())
        return torch.stack(tokens, 1), torch.stack(log_probs, 1), torch.stack(entropies, 1)


def rewards(tokens, topic):
    scores = []
    for row, kind in zip(tokens.tolist(), topic.tolist()):
        wanted = {3 * kind, 3 * kind + 1, 3 * kind + 2}
        scores.append(len(wanted & set(row)) - 0.2 * (len(row) - len(set(row))))
    return torch.tensor(scores)


def self_critical_loss(model, topic, length=4, bonus=0.01):
    tokens, log_probs, entropies = model.rollout(topic, length)
    model.eval()
    with torch.no_grad():
        greedy, _, _ = model.rollout(topic, length, greedy=True)
    model.train()
    reward = rewards(tokens, topic)
    advantage = reward - rewards(greedy, topic)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    loss = -(advantage[:, None] * log_probs).mean() - bonus * entropies.mean()
    return loss, reward.mean().item()


torch.manual_seed(83)
model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
average = 0.0
for step in range(60):
    topic = torch.randint(0, 4, (32,))
    loss, reward = self_critical_loss(model, topic)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    average = 0.9 * average + 0.1 * reward
    if step % 15 == 14:
        print(step, round(loss.item(), 4), round(average, 3))
