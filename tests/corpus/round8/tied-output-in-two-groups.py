# /// case
# title = "The tied output matrix is in the embedding's group and in the decoder's"
# category = "optimizer"
# kind = "parameter-in-two-groups"
# kinds_also_ok = ["shared-parameter-twice", "duplicate-parameter"]
# severity = "error"
# names = ["param_groups", "embed", "decoder"]
# symptom = "the constructor of the optimizer raises"
# raises = "ValueError"
# raises_message = "some parameters appear in more than one parameter group"
# cause = "The decoder's weight is the embedding's, and both groups list it."
# fix = "leave the shared weight out of the second group"
# ///
import argparse
import math

import torch
import torch.nn as nn


class TinyLM(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        nn.init.normal_(self.embed.weight, std=1 / math.sqrt(width))
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.Linear(width, vocab)
        self.decoder.weight = self.embed.weight  #! also

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.decoder(hidden)


def param_groups(model, args):
    return [
        {"params": list(model.embed.parameters()), "lr": args.lr * 0.1, "weight_decay": 0.0},  #! here
        {"params": list(model.rnn.parameters()), "lr": args.lr},
        {"params": list(model.decoder.parameters()), "lr": args.lr, "weight_decay": 0.0},  #- here
#+         {"params": [model.decoder.bias], "lr": args.lr, "weight_decay": 0.0},
    ]


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--vocab", type=int, default=50)
args = parser.parse_args([])

torch.manual_seed(0)
text = torch.randint(0, args.vocab, (2000,))
model = TinyLM(args.vocab, 16)
optimizer = torch.optim.AdamW(param_groups(model, args), weight_decay=0.01)  #! also
for step in range(args.steps):
    starts = torch.randint(0, 1980, (8,))
    batch = torch.stack([text[s:s + 17] for s in starts.tolist()])
    logits = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), batch[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("perplexity", math.exp(loss.item()))
