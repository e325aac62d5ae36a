import threading

import torch

torch.manual_seed(0)
w = torch.ones(4, requires_grad=True)


def work(n):
    for _ in range(3):
        y = (w * n).tanh()
        y.sum().backward()


thread = threading.Thread(target=work, args=(1,))
_ = thread.start(), thread.join()  # one statement: no moment of this thread falls between those of the other
linear = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(linear.parameters(), 0.1)
history = []
for _ in range(4):
    optimizer.zero_grad()
    out = linear(torch.ones(2, 4)).relu()
    loss = out.pow(2).mean()
    history.append(loss)
    loss.backward()
    optimizer.step()
lstm = torch.nn.LSTM(4, 4, batch_first=True)
o, (hidden, cell) = lstm(torch.ones(2, 3, 4))
o.sum().backward()
