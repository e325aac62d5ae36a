# /// case
# title = "The recurrent state is carried over with its graph"
# category = "retention"
# kind = "backward-through-freed-graph"
# kinds_also_ok = ["recurrent-state-not-detached", "graph-walked-twice"]
# severity = "error"
# names = ["state"]
# symptom = "the second backward raises"
# raises = "RuntimeError"
# raises_message = "second time"
# cause = "the state of one chunk leads back into the graph of the chunk before, which was freed"
# fix = "detach the state between chunks"
# ///
import torch
import torch.nn as nn


class CharLM(nn.Module):
    def __init__(self, vocab=27, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids, state=None):
        h, state = self.rnn(self.embed(ids), state)
        return self.out(h), state


torch.manual_seed(12)
text = torch.randint(0, 27, (4, 161))
model = CharLM()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
state = None  #! also
for start in range(0, 160, 20):
    chunk = text[:, start:start + 21]
    logits, state = model(chunk[:, :-1], state)  #! here
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()  #! also
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
#+     state = state.detach()
print(loss.item())
