# /// case
# title = "The state is detached at every time step"
# category = "graph-break"
# kind = "detach-every-time-step"
# kinds_also_ok = ["detach-in-recurrence", "truncated-to-one-step", "detached-hidden-state"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["state", "repackage", "detach"]
# symptom = "no gradient goes back over more than one time step"
# symptom_check = "torch.autograd.grad(model(torch.tensor([[0, 1, 2, 2]]), model.init_state(1))[0][0, -1].square().sum(), model.embed.weight)[0][:2].abs().sum().item() == 0"
# cause = "repackage() stands inside of the loop over time steps instead of in front of it."
# fix = "detach the state once per chunk"
# ///
import torch
from torch import nn

TEXT = ("the cat sat on the mat and the dog sat on the log " * 12)
VOCAB = sorted(set(TEXT))
STOI = {c: i for i, c in enumerate(VOCAB)}


def repackage(state):
    return tuple(s.detach() for s in state)  #! also


class CharLSTM(nn.Module):
    def __init__(self, vocab, emb=16, hidden=48):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(vocab, emb)
        self.cell = nn.LSTMCell(emb, hidden)
        self.decoder = nn.Linear(hidden, vocab)

    def init_state(self, batch):
        zero = self.decoder.weight.new_zeros(batch, self.hidden)
        return zero, zero.clone()

    def forward(self, tokens, state):
        outputs = []
#+         state = repackage(state)
        for step in self.embed(tokens).unbind(dim=1):  #! also
            state = repackage(state)  #- here
            state = self.cell(step, state)  #! also
            outputs.append(state[0])
        return self.decoder(torch.stack(outputs, dim=1)), state


def stream(text, batch, seq_len):
    ids = torch.tensor([STOI[c] for c in text])
    ids = ids[: len(ids) // batch * batch].view(batch, -1)
    for start in range(0, ids.size(1) - 1, seq_len):
        stop = min(start + seq_len, ids.size(1) - 1)
        yield ids[:, start:stop], ids[:, start + 1:stop + 1]


def train_epoch(model, optimizer, criterion, batch=4, seq_len=25):
    model.train()
    state = model.init_state(batch)
    total, n = 0.0, 0
    for inputs, targets in stream(TEXT, batch, seq_len):
        logits, state = model(inputs, state)
        loss = criterion(logits.reshape(-1, len(VOCAB)), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * targets.numel()
        n += targets.numel()
    return total / n


@torch.no_grad()
def generate(model, prompt, length=30):
    model.eval()
    state = model.init_state(1)
    logits, state = model(torch.tensor([[STOI[c] for c in prompt]]), state)
    out = prompt
    for _ in range(length):
        nxt = logits[0, -1].argmax().item()
        out += VOCAB[nxt]
        logits, state = model(torch.tensor([[nxt]]), state)
    return out


torch.manual_seed(1)
torch.set_num_threads(1)
model = CharLSTM(len(VOCAB))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    ce = train_epoch(model, optimizer, nn.CrossEntropyLoss())
    print(f"epoch {epoch} | ce {ce:.3f} | {generate(model, 'the ')!r}")
