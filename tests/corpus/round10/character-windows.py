# /// case
# title = "The LSTM's state is carried into the next window with its graph"
# category = "retention"
# kind = "state-not-detached"
# kinds_also_ok = ["backward-twice", "missing-detach", "graph-freed", "truncated-bptt-without-detach"]
# severity = "error"
# names = ["state", "carried", "detach"]
# symptom = "the second window's backward raises"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "The second loss reaches through state into the first window's graph, which its backward freed."
# fix = "detach the state between windows"
# ///
import torch
import torch.nn as nn

TEXT = ("the cat sat on the mat and the dog sat on the log while the rain fell on the roof " * 12)
ALPHABET = sorted(set(TEXT))


class CharModel(nn.Module):
    def __init__(self, symbols, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(symbols, 16)
        self.lstm = nn.LSTM(16, hidden, batch_first=True)
        self.decode = nn.Linear(hidden, symbols)

    def forward(self, chars, state=None):
        output, state = self.lstm(self.embed(chars), state)
        return self.decode(output), state


def batchify(text, streams):
    ids = torch.tensor([ALPHABET.index(c) for c in text])
    usable = len(ids) // streams * streams
    return ids[:usable].view(streams, -1)


def windows(streams, bptt):
    for start in range(0, streams.size(1) - bptt - 1, bptt):
        yield streams[:, start:start + bptt], streams[:, start + 1:start + bptt + 1]


torch.manual_seed(8)
streams = batchify(TEXT, 8)
model = CharModel(len(ALPHABET))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(6):
    state, total, count = None, 0.0, 0
    for chars, following in windows(streams, 16):
        logits, carried = model(chars, state)  #! also
        loss = criterion(logits.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()  #! also
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        state = carried  #- here
#+         state = tuple(part.detach() for part in carried)
        total, count = total + loss.item(), count + 1
    print(f"epoch {epoch}: {total / count:.3f}")
