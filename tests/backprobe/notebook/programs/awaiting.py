# %%
import asyncio

import torch

w = torch.ones(2, requires_grad=True)


async def fetch(value):
    await asyncio.sleep(0)
    return value * 2


# %%
batch = await fetch(torch.ones(2))
(w * batch).sum().backward()
w.grad
# %%
for value in await asyncio.gather(fetch(1), fetch(2)):
    print(value)
# %%
async with asyncio.Lock() as lock:
    print("held")
await fetch("shown")
# %%
await fetch(None)
