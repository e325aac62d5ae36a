import torch

x = torch.ones(1)


def stop():
    raise KeyboardInterrupt


stop()
