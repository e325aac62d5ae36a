# /// case
# title = "The loss is computed on the module inside of DDP"
# category = "distributed"
# kind = "ddp-bypassed"
# kinds_also_ok = ["ddp-step-unsynchronised"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["module", "DistributedDataParallel", "model_unwrapped"]
# symptom = "backward reduces no gradients"
# symptom_check = "reduced == 0"
# cause = "the forward goes to .module, which arms no reduction"
# fix = "call the wrapper"
# evidence = [
#     { url = "https://github.com/jingyaogong/minimind/issues/853", title = "[bug] RL trainers bypass DDP: gradients are never all-reduced in GRPO / PPO / Agent training" },
#     { url = "https://github.com/OpenTSLM/OpenTSLM/pull/49", title = "Multi-GPU training does not data-parallelize: the DDP wrapper is bypassed" },
# ]
# ///
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(42)
reduced = 0


def count_and_reduce(state, bucket):
    global reduced
    reduced += 1
    work = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return work.then(lambda f: f.value()[0] / dist.get_world_size())


class PolicyLM(nn.Module):
    def __init__(self, vocab=24, dim=20):
        super().__init__()
        self.emb, self.rnn, self.head = nn.Embedding(vocab, dim), nn.GRU(dim, dim, batch_first=True), nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0])


model = DistributedDataParallel(PolicyLM())
model.register_comm_hook(None, count_and_reduce)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step in range(3):
    model_unwrapped = model.module if isinstance(model, DistributedDataParallel) else model  #! also
    # sample a group of answers per prompt
    ids = torch.randint(0, 24, (2, 3)).repeat_interleave(4, 0)
    with torch.no_grad():
        for _ in range(5):
            token = torch.distributions.Categorical(logits=model_unwrapped(ids)[:, -1]).sample()
            ids = torch.cat([ids, token[:, None]], 1)
    rewards = (ids[:, 3:] % 2 == 0).float().mean(1).view(2, 4)
    advantages = ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)).view(-1)
    logits = model_unwrapped(ids)  #- here
#+     logits = model(ids)
    logp = logits[:, 2:-1].log_softmax(-1).gather(2, ids[:, 3:, None]).squeeze(2)
    loss = -(logp * advantages[:, None]).mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item(), reduced)
dist.destroy_process_group()
