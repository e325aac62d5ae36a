from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class Pool:
    def __init__(self, model, workers):
        self.model = model
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.executor = ThreadPoolExecutor(workers)

    def shard(self, x, y, total):
        loss = nn.functional.mse_loss(self.model(x), y, reduction="sum") / total
        return loss.item(), torch.autograd.grad(loss, self.parameters)

    def gradients(self, shards):
        total = sum(y.numel() for _, y in shards)
        jobs = [self.executor.submit(self.shard, x, y, total) for x, y in shards]
        results = [job.result() for job in jobs]
        for p, *parts in zip(self.parameters, *(grads for _, grads in results)):
            p.grad = torch.stack(parts).sum(0)
        return sum(value for value, _ in results)

    def validate(self, x, y):
        def work():
            with torch.inference_mode():
                return nn.functional.mse_loss(self.model(x), y).item()
        return self.executor.submit(work)

    def close(self):
        self.executor.shutdown()


torch.manual_seed(35)
model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 2))
pool = Pool(model, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
mixing = torch.randn(5, 2)
held = torch.randn(40, 5)
for step in range(12):
    x = torch.randn(90, 5)
    y = torch.sin(x @ mixing)
    value = pool.gradients(list(zip(x.split(30), y.split(30))))
    optimizer.step()
    checked = pool.validate(held, torch.sin(held @ mixing)).result()
    print(step, round(value, 4), round(checked, 4))
pool.close()
