import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Acoustic(nn.Module):
    def __init__(self, feats=6, hidden=16, vocab=5):
        super().__init__()
        self.conv = nn.Conv1d(feats, hidden, 3, stride=2, padding=1)
        self.rnn = nn.GRU(hidden, hidden, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden, vocab)

    def forward(self, x):
        h = F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return F.log_softmax(self.fc(h), dim=-1)


net = Acoustic()
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(6):
    frames = torch.randn(4, 40, 6)
    in_len = torch.tensor([20, 18, 20, 15])
    tgt_len = torch.randint(2, 6, (4,))
    targets = torch.randint(1, 5, (4, 6))
    logp = net(frames).transpose(0, 1)
    loss = ctc(logp, targets, in_len, tgt_len)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    opt.step()
    best = logp.detach().argmax(-1).T
    decoded = [[int(c) for c in torch.unique_consecutive(row) if c != 0] for row in best]
    print(step, loss.item(), decoded[0])
