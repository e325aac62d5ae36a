# /// case
# title = "The loss of a sequence-to-sequence model counts the padding"
# category = "loss"
# kind = "padding-not-ignored"
# kinds_also_ok = ["missing-ignore-index", "loss-over-padding"]
# severity = "warning"
# names = ["ignore_index", "PAD", "criterion"]
# symptom = "positions with padding give a gradient"
# symptom_check = "bool(logits.grad[target_out == PAD].abs().sum() > 0)"
# cause = "CrossEntropyLoss is created without ignore_index, and more than half of the target positions are padding."
# fix = "ignore_index=PAD"
# ///
import torch
import torch.nn as nn

PAD, BOS, EOS = 0, 1, 2
VOCAB = 16


class Seq2Seq(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, width, padding_idx=PAD)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.project = nn.Linear(width, VOCAB)

    def forward(self, source, target_in):
        _, state = self.encoder(self.embedding(source))
        states, _ = self.decoder(self.embedding(target_in), state)
        return self.project(states)


def make_pair(longest=10):
    length = int(torch.randint(2, 6, ()))
    body = torch.randint(3, VOCAB, (length,))
    return body, body.flip(0)


def collate(pairs, longest=10):
    source = torch.full((len(pairs), longest), PAD)
    target = torch.full((len(pairs), longest), PAD)
    for row, (a, b) in enumerate(pairs):
        source[row, :len(a)] = a
        target[row, 0], target[row, 1:len(b) + 1], target[row, len(b) + 1] = BOS, b, EOS
    return source, target


torch.manual_seed(29)
net = Seq2Seq()
criterion = nn.CrossEntropyLoss()  #- here
#+ criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(15):
    source, target = collate([make_pair() for _ in range(16)])
    target_in, target_out = target[:, :-1], target[:, 1:]
    logits = net(source, target_in)
    logits.retain_grad()
    loss = criterion(logits.reshape(-1, VOCAB), target_out.reshape(-1))  #! here
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    hit = (logits.argmax(-1) == target_out)[target_out != PAD].float().mean()
    print(step, loss.item(), hit.item(), logits.grad.norm().item())
