"""Trains one model for twenty steps and prints, of each step, the loss and what gradients, parameters and random numbers are.

usage: train.py KIND [FOLDER OF bench/training/models.py]
"""
import hashlib
import random
import sys

import numpy
import torch
from kinds import KINDS

STEPS = 20


def digest(tensors):
    """Of the bits of every tensor, and of which are None."""
    found = hashlib.sha256()
    for tensor in tensors:
        if tensor is None:
            found.update(b"None")
            continue
        if tensor.layout is torch.sparse_coo:
            tensor = tensor.detach().coalesce()
            found.update(tensor.indices().numpy().tobytes())
            tensor = tensor.values()
        found.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def randoms():
    """Where the generators of torch, numpy and Python stand."""
    states = (torch.get_rng_state().numpy().tobytes(), repr(numpy.random.get_state()), repr(random.getstate()))
    return hashlib.sha256(repr(states).encode()).hexdigest()[:16]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    training = KINDS[sys.argv[1]]()
    for number in range(STEPS):
        loss = training.step(number)
        parameters = training.parameters()
        grads = digest([parameter.grad for parameter in parameters])
        print(number, float(loss).hex(), grads, digest(training.state()), randoms())
    print(*training.last(), sep="\n")


if __name__ == "__main__":
    main()
