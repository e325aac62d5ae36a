# /// case
# title = "The policy's loss is a sum of Python numbers"
# category = "graph-break"
# kind = "loss-rebuilt-as-leaf"
# kinds_also_ok = ["graph-break-item", "constant-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["rl_loss", "log_probs"]
# symptom = "the recurrent policy has no gradient"
# symptom_check = "all(p.grad is None for p in agent.parameters())"
# cause = "log-probabilities are turned to numbers by .item(), and a new leaf is made of the sum"
# fix = "sum the tensors themselves"
# evidence = [
#     { url = "https://github.com/isayev/ReLeaSE/issues/39", title = "Weights are not updating" },
#     { url = "https://github.com/speechbrain/speechbrain/issues/735", title = "element 0 of tensors does not require grad and does not have a grad_fn" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
ALPHABET = "<CNO()=1>"
START, STOP = 0, len(ALPHABET) - 1


class SmilesRNN(nn.Module):
    def __init__(self, n_tokens, hidden=24):
        super().__init__()
        self.emb = nn.Embedding(n_tokens, 12)
        self.cell = nn.GRUCell(12, hidden)
        self.head = nn.Linear(hidden, n_tokens)

    def forward(self, token, h):
        h = self.cell(self.emb(token), h)
        return self.head(h), h


def sample(agent, max_len=12):
    token, h, out = torch.tensor([START]), torch.zeros(1, 24), []
    with torch.no_grad():
        for _ in range(max_len):
            logits, h = agent(token, h)
            token = torch.multinomial(logits.softmax(-1), 1).squeeze(1)
            out.append(token.item())
            if token.item() == STOP:
                break
    return out


def reward_of(molecule):
    return molecule.count(1) / len(molecule)  # carbons please


agent = SmilesRNN(len(ALPHABET))
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    rl_loss = 0.0
    for _ in range(3):
        molecule = sample(agent)
        discounted = reward_of(molecule)
        token, h = torch.tensor([START]), torch.zeros(1, 24)
        for top_i in molecule:
            logits, h = agent(token, h)
            log_probs = F.log_softmax(logits, dim=-1)
            rl_loss -= log_probs[0, top_i].item() * discounted  #- here
#+             rl_loss = rl_loss - log_probs[0, top_i] * discounted
            token = torch.tensor([top_i])
            discounted *= 0.97
    rl_loss = torch.tensor(rl_loss / 3, requires_grad=True)  #- here
#+     rl_loss = rl_loss / 3
    rl_loss.backward()  #! also
    optimizer.step()
    print(step, rl_loss.item())
