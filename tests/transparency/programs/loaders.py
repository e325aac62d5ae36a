"""DataLoader with workers (by fork and by spawn), threads of the user, a pool, queues."""
import concurrent.futures
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Numbers(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        x = torch.full((3,), float(index), requires_grad=True)
        y = x * 2
        y.sum().backward()
        return x.detach() + x.grad, index % 2


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(6):
            yield torch.ones(2) * i


if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for workers, context in ((0, None), (2, "fork"), (1, "spawn")):
        loader = DataLoader(Numbers(), 4, shuffle=True, num_workers=workers, multiprocessing_context=context, generator=torch.Generator().manual_seed(1))
        for batch, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(batch), target)
            loss.backward()
            optimizer.step()
        print(workers, loss.item().hex())
    print([b.tolist() for b in DataLoader(Stream(), 2, num_workers=1, persistent_workers=False)])

    def work(i):
        a = torch.full((2,), float(i), requires_grad=True)
        for _ in range(5):
            b = (a * i).exp()
            b.sum().backward()
        return a.grad.tolist()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        print(list(pool.map(work, [0.1, 0.2, 0.3, 0.4])))
    shared = torch.ones(2, requires_grad=True)
    lock = threading.Lock()
    losses = [(shared * n).sum() for n in range(1, 4)]

    def back(loss):
        with lock:
            loss.backward()

    threads = [threading.Thread(target=back, args=(loss,)) for loss in losses]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(shared.grad.tolist())
    memory = torch.ones(3).share_memory_()
    more = memory * 2
    print(memory.is_shared(), more.tolist())
