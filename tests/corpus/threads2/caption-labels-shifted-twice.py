# /// case
# title = "Labels are shifted by the model and by the loss"
# category = "loss"
# kind = "labels-shifted-twice"
# severity = "warning"
# names = ["shift", "labels", "causal_lm_loss"]
# symptom = "position t is trained to predict token t + 2"
# symptom_check = "torch.equal(model.targets_used[:, 0], ids[:, 2])"
# cause = "the model shifts and hands over to a loss that shifts"
# fix = "shift once"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/pull/47395", title = "Fix double-shifted training loss in GitForCausalLM" },
# ]
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GitConfig:
    vocab_size: int = 20
    hidden_size: int = 16
    num_image_tokens: int = 3


def causal_lm_loss(logits, labels, vocab_size):
    shift_labels = F.pad(labels, (0, 1), value=-100)[..., 1:]  #! also
    return F.cross_entropy(logits.reshape(-1, vocab_size), shift_labels.reshape(-1))


class GitForCausalLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.visual_projection = nn.Linear(8, config.hidden_size)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.mixer = nn.GRU(config.hidden_size, config.hidden_size, batch_first=True)
        self.output = nn.Linear(config.hidden_size, config.vocab_size)

    def forward(self, input_ids, pixel_values, labels=None):
        hidden = torch.cat([self.visual_projection(pixel_values), self.embed(input_ids)], 1)
        logits = self.output(self.mixer(hidden)[0])
        loss = None
        if labels is not None:
            shifted_logits = logits[:, self.config.num_image_tokens : -1, :].contiguous()  #-
            labels = labels[:, 1:].contiguous()  #- here
#+             shifted_logits = logits[:, self.config.num_image_tokens :, :].contiguous()
            loss = causal_lm_loss(shifted_logits, labels, self.config.vocab_size)  #! here
            self.targets_used = F.pad(labels, (0, 1), value=-100)[..., 1:]
        return loss, logits


torch.manual_seed(76)
model = GitForCausalLM(GitConfig())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(5):
    start = torch.randint(0, 20, (8, 1))
    ids = (start + torch.arange(7)) % 20
    loss, _ = model(ids, torch.randn(8, 3, 8), labels=ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), model.targets_used.shape)
