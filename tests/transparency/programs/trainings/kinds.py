"""What is trained: each kind is a class with a step, and what it consists of."""
import os
import sys
import tempfile
from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Training:
    """A network, an optimizer, and a loss of random inputs."""

    def __init__(self):
        self.net = self.network()
        self.optimizer = self.chosen()

    def network(self):
        return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))

    def chosen(self):
        return torch.optim.AdamW(self.net.parameters(), 1e-2)

    def loss(self, number):
        x = torch.randn(8, 6)
        y = torch.randint(0, 3, (8,))
        return F.cross_entropy(self.net(x), y)

    def step(self, number):
        self.optimizer.zero_grad(set_to_none=number % 2 == 0)
        loss = self.loss(number)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def parameters(self):
        return list(self.net.parameters())

    def state(self):
        inner = [v for state in self.optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
        return [*self.net.state_dict().values(), *inner]

    def last(self):
        return [type(self.net).__name__, torch.is_grad_enabled()]


def of_the_bench(name):
    class Bench(Training):
        def network(self):
            sys.path.insert(0, sys.argv[2])
            from models import build

            net, self.inputs = build(name)
            return net

        def loss(self, number):
            return self.net(*self.inputs)

    return Bench


class Gpt2(Training):
    """GPT-2 of transformers, made from a configuration."""

    def network(self):
        from transformers import GPT2Config, GPT2LMHeadModel

        return GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, n_positions=32, vocab_size=101)).train()

    def loss(self, number):
        words = torch.randint(0, 101, (2, 16))
        return self.net(input_ids=words, labels=words).loss


class Bert(Training):
    """BERT of transformers, made from a configuration, with a mask."""

    def network(self):
        from transformers import BertConfig, BertForMaskedLM

        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        return BertForMaskedLM(BertConfig(vocab_size=101, **sizes)).train()

    def loss(self, number):
        words, mask = torch.randint(0, 101, (2, 16)), torch.ones(2, 16, dtype=torch.long)
        mask[1, 10:] = 0
        return self.net(input_ids=words, attention_mask=mask, labels=words).loss


class Transformer(Training):
    """nn.Transformer in training, and an encoder's fast path in evaluation."""

    def network(self):
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        return nn.Transformer(16, 2, 1, 1, 32, batch_first=True)

    def loss(self, number):
        return self.net(torch.randn(2, 5, 16), torch.randn(2, 4, 16)).square().mean()

    def last(self):
        encoder = self.encoder.eval()
        padding = torch.zeros(2, 5, dtype=torch.bool)
        padding[1, 3:] = True
        with torch.no_grad():
            out = encoder(torch.randn(2, 5, 16), src_key_padding_mask=padding)
        return [tuple(out.shape), out.double().sum().item().hex(), out[0, 0].tolist()]


class Scaled(Training):
    """Autocast with a GradScaler on the CPU; one step overflows."""

    def __init__(self):
        super().__init__()
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=5)

    def step(self, number):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = self.loss(number) * (float("inf") if number == 7 else 1)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def last(self):
        return [self.scaler.get_scale()]


def checkpointed(reentrant):
    class Checkpointed(Training):
        def network(self):
            return nn.Sequential(*[nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.3), nn.Tanh()) for _ in range(3)])

        def loss(self, number):
            x = torch.randn(4, 6, requires_grad=True)
            for block in self.net:
                x = checkpoint(block, x, use_reentrant=reentrant)
            return x.square().mean()

    return Checkpointed


def compiled(backend):
    class Compiled(Training):
        def network(self):
            self.plain = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3))
            return torch.compile(self.plain, backend=backend)

        def last(self):
            counters = torch._dynamo.utils.counters
            return [counters["stats"]["unique_graphs"], counters["stats"]["calls_captured"], dict(counters["graph_break"])]

    return Compiled


def in_a_group(rank, size, file, out):
    """One process of a data-parallel training; the first one writes what each step gave."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    told = []
    for step in range(20):
        optimizer.zero_grad()
        x = torch.randn(4, 6, generator=torch.Generator().manual_seed(10 * step + rank))
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        told.append([loss.item().hex(), [p.grad.double().sum().item().hex() for p in net.parameters()]])
    if rank == 0:
        with open(out, "w") as target:
            target.write("\n".join(map(repr, told)))
    dist.barrier()
    dist.destroy_process_group()


class Distributed(Training):
    """Data-parallel with gloo: this process alone, then two that are started."""

    def last(self):
        told = []
        with tempfile.TemporaryDirectory() as folder:
            for size in (1, 2):
                file, out = os.path.join(folder, f"{size}"), os.path.join(folder, f"{size}.out")
                if size == 1:
                    in_a_group(0, 1, file, out)
                else:
                    torch.multiprocessing.spawn(in_a_group, (2, file, out), nprocs=2)
                told.append(open(out).read())
        return told


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(6, generator=generator), index % 3


class Loaded(Training):
    """Batches from two worker processes."""

    def __init__(self):
        super().__init__()
        loader = torch.utils.data.DataLoader(Rows(), batch_size=8, shuffle=True, num_workers=2)
        self.batches = [batch for _ in range(4) for batch in loader]

    def loss(self, number):
        x, y = self.batches[number]
        return F.cross_entropy(self.net(x), y)


class Lbfgs(Training):
    """A closure that runs several times a step."""

    def network(self):
        return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))

    def chosen(self):
        self.x = torch.randn(12, 6)
        self.calls = 0
        return torch.optim.LBFGS(self.net.parameters(), 0.5, max_iter=4, line_search_fn="strong_wolfe")

    def step(self, number):
        def closure():
            self.calls += 1
            self.optimizer.zero_grad()
            loss = (self.net(self.x) - self.x.sum(1, keepdim=True)).square().mean()
            loss.backward()
            return loss

        return self.optimizer.step(closure).detach()

    def last(self):
        return [self.calls]


class Penalty(Training):
    """Double backward: the norm of a gradient is part of the loss."""

    def network(self):
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))

    def loss(self, number):
        x = torch.randn(5, 6, requires_grad=True)
        out = self.net(x)
        (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return out.mean() + (g.norm(dim=1) - 1).square().mean()


class Transforms(Training):
    """vmap, grad, jacrev and hessian inside a training step."""

    def network(self):
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def loss(self, number):
        from torch.func import functional_call, grad, hessian, jacrev, vmap

        values = {name: parameter.detach() for name, parameter in self.net.named_parameters()}

        def one(values, x):
            return functional_call(self.net, values, (x,)).square().sum()

        x = torch.randn(4, 3)
        each = vmap(grad(one), in_dims=(None, 0))(values, x)
        curved = hessian(lambda row: one(values, row))(x[0]).sum() + jacrev(lambda row: row.sin())(x[1]).sum()
        weights = sum(part.square().mean() for part in each.values())
        return self.net(x).square().mean() * (1 + weights + curved.tanh())


class Sparse(Training):
    """An embedding with sparse gradients."""

    def network(self):
        return nn.EmbeddingBag(20, 4, mode="sum", sparse=True)

    def chosen(self):
        return torch.optim.SparseAdam(list(self.net.parameters()), 1e-2)

    def step(self, number):
        self.optimizer.zero_grad()
        loss = self.net(torch.randint(0, 20, (3, 5))).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class Ragged(Training):
    """Nested tensors, strided and jagged."""

    def loss(self, number):
        layout = torch.jagged if number % 2 else torch.strided
        rows = [torch.randn(2, 6), torch.randn(3, 6)]
        nested = torch.nested.nested_tensor(rows, layout=layout)
        out = torch.nested.nested_tensor_from_jagged if layout is torch.jagged else None
        hidden = self.net[0](nested)
        flat = hidden.values() if out else torch.cat(list(hidden.unbind()))
        return self.net[4](self.net[2](flat)).square().mean()


class Complex(Training):
    """Complex parameters."""

    def network(self):
        return nn.Sequential(nn.Linear(6, 5, dtype=torch.complex64), nn.Linear(5, 2, dtype=torch.complex64))

    def loss(self, number):
        x = torch.randn(4, 6, dtype=torch.complex64)
        return torch.fft.fft(self.net(x)).abs().square().mean() + self.net[0].weight.conj().imag.sum() * 0.1


def of_dtype(dtype):
    class Narrow(Training):
        def network(self):
            return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to(dtype)

        def chosen(self):
            return torch.optim.SGD(self.net.parameters(), 1e-2, momentum=0.9)

        def loss(self, number):
            return self.net(torch.randn(8, 6).to(dtype)).float().square().mean()

    return Narrow


class Quantised(Training):
    """Fake quantisation with observers, and a dynamically quantised copy at the end."""

    def network(self):
        from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver

        observed = FakeQuantize(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255)
        return nn.Sequential(nn.Linear(6, 8), observed, nn.ReLU(), nn.Linear(8, 3))

    def last(self):
        from torch.ao.quantization import quantize_dynamic

        copy = nn.Sequential(deepcopy(self.net[0]), nn.ReLU(), deepcopy(self.net[3]))
        net = quantize_dynamic(copy, {nn.Linear}, dtype=torch.qint8)
        q = torch.quantize_per_tensor(torch.linspace(-1, 1, 6), 0.1, 3, torch.quint8)
        return [net(torch.linspace(-1, 1, 12).view(2, 6)).tolist(), q.int_repr().tolist(), q.dequantize().tolist()]


KINDS = {
    **{name: of_the_bench(name) for name in ("mlp", "resnet18", "gpt2", "charrnn", "pinn", "lstmcell")},
    "gpt2_of_transformers": Gpt2,
    "bert_of_transformers": Bert,
    "transformer": Transformer,
    "scaled": Scaled,
    "reentrant": checkpointed(True),
    "not_reentrant": checkpointed(False),
    **{backend: compiled(backend) for backend in ("eager", "aot_eager", "inductor")},
    "distributed": Distributed,
    "loaded": Loaded,
    "lbfgs": Lbfgs,
    "penalty": Penalty,
    "transforms": Transforms,
    "sparse": Sparse,
    "ragged": Ragged,
    "complex": Complex,
    "bfloat16": of_dtype(torch.bfloat16),
    "float16": of_dtype(torch.float16),
    "quantised": Quantised,
}
