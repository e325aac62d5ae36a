import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
V, PAD = 12, 0


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(V, 12), nn.GRU(12, 16, batch_first=True), nn.Linear(16, V)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def sequence_logp(model, ids, prompt_len):
    logits = model(ids[:, :-1])
    logp = torch.gather(logits.log_softmax(-1), 2, ids[:, 1:].unsqueeze(2)).squeeze(2)
    mask = (torch.arange(ids.size(1) - 1) >= prompt_len - 1) & (ids[:, 1:] != PAD)
    return (logp * mask).sum(-1)


policy = LM()
ref = copy.deepcopy(policy).eval()
for p in ref.parameters():
    p.requires_grad = False
opt = torch.optim.AdamW(policy.parameters(), lr=3e-3)
beta = 0.5
for step in range(6):
    prompt = torch.randint(1, V, (8, 4))
    chosen = torch.cat([prompt, prompt.flip(1)], 1)
    rejected = torch.cat([prompt, torch.randint(1, V, (8, 4))], 1)
    rejected[::2, -1] = PAD
    both = torch.cat([chosen, rejected])
    pol = sequence_logp(policy, both, 4)
    with torch.no_grad():
        base = sequence_logp(ref, both, 4)
    ratio = pol - base
    margin = beta * (ratio[:8] - ratio[8:])
    loss = -F.logsigmoid(margin).mean()
    opt.zero_grad()
    loss.backward()
    gn = nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
    opt.step()
    print(step, loss.item(), (margin > 0).float().mean().item(), gn.item())
