import asyncio
import contextlib
import torch

w = torch.ones(3, requires_grad=True)

class Rows:
    def __init__(self, n):
        self.n = n
    def __aiter__(self):
        return self
    async def __anext__(self):
        if not self.n:
            raise StopAsyncIteration
        self.n -= 1
        await asyncio.sleep(0)
        return w * self.n

class Context:
    async def __aenter__(self):
        await asyncio.sleep(0)
        return w.sum()
    async def __aexit__(self, kind, error, tb):
        print("left", kind)
        return kind is ValueError

async def agen(n):
    for i in range(n):
        got = yield i * w
        if got:
            print("got", got)

async def one(name):
    total = w.new_zeros(())
    async for row in Rows(3):
        total = total + row.sum()
        await asyncio.sleep(0)
    else:
        print(name, "else")
    async with Context() as c, Context() as d:
        total = total + c + d
        raise ValueError(name)
    return total

async def main():
    done = await asyncio.gather(one("a"), one("b"), return_exceptions=True)
    print(done)
    print([float(x.sum()) async for x in agen(3)], {i async for i in agen(0)})
    print([await one(n) async for n in names() if n != "x"])
    g = agen(2)
    print(await g.asend(None), await g.asend("hello"))
    await g.aclose()
    async with contextlib.AsyncExitStack() as stack:
        v = await stack.enter_async_context(Context())
        v.backward()
    print(w.grad)
    task = asyncio.create_task(asyncio.sleep(10))
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")
    return (y := await one("last"))

async def names():
    for n in "xyz":
        yield n

print(asyncio.run(main()))

async def fails():
    x = await asyncio.sleep(0, torch.ones(2))
    return x @ torch.ones(3)

asyncio.run(fails())
