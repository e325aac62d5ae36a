"""Statistics of any tensor against numpy's doubles, by every kernel the machine has and by the twin.

Three things decide how a tensor is read, each independent of the others, and a test takes the one that it is about:
`by_kernel`, which instructions reduce a block; `by_view`, how the memory behind a tensor is found; `by_engine`, whether
the compiled core or the twin does it at all.
"""

import contextlib
import itertools
import math
import warnings

import numpy as np
import pytest
import torch

from backprobe.capture.options import Caps
from backprobe.capture.torch_access import native as core
from backprobe.capture.torch_access import tensor_memory, tensor_statistics
from backprobe.capture.tracking import gradients, histograms

INSTRUCTIONS = ("avx512", "avx2", "sse2", "plain")
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
)  # fmt: skip
COMPLEX = (torch.complex64, torch.complex128)
VIEWS = ("layout", "exchange", "attributes")
COUNTS = (1, 2, 3, 15, 16, 17, 63, 64, 65, 255, 511, 512, 513, 1000, 4095, 4096, 4097, 8192, 70_001)
"""Around the vectors, the parts and the blocks of the kernels; the last is longer than a block of the twin, too."""

MOST_ERROR = 2e-7
"""Relative, of the norm: half of what one rounding to float32 may cost is 6e-8."""


TWIN = pytest.param("twin", marks=pytest.mark.full)
by_kernel = pytest.mark.parametrize("way", [*INSTRUCTIONS, TWIN], indirect=True)
by_view = pytest.mark.parametrize("way", [*VIEWS, TWIN], indirect=True)
by_engine = pytest.mark.parametrize("way", ["core", TWIN], indirect=True)


@pytest.fixture
def way(request, monkeypatch, require):
    """A way of reading: kernels of one kind, torch's layout, its exchange table, its attributes, the core as it is, numpy."""
    if request.param == "twin":
        for module in (tensor_memory, tensor_statistics, gradients, histograms):
            monkeypatch.setattr(module, "native", None)
        yield request.param
        return
    require("core")
    kind = request.param if request.param in INSTRUCTIONS else None
    if core.native.use_instructions(kind) is None:
        pytest.skip(f"this machine has no {kind}")
    core.native.use_layout(request.param not in {"exchange", "attributes"})
    core.native.use_exchange(request.param != "attributes")
    yield request.param
    core.native.use_exchange(True)
    core.native.use_layout(True)
    core.native.use_instructions(None)


def reduced(tensor, **caps):
    return tensor_statistics.statistics(tensor, Caps(**caps))


def single(number):
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def same(first, other):
    return first == other or (math.isnan(first) and math.isnan(other))


def doubles(tensor):
    """The elements as numpy has them at their widest, read by torch."""
    plain = tensor.detach().resolve_neg().resolve_conj()
    if plain.is_complex():
        return plain.to(torch.complex128).numpy()
    if plain.dtype in (torch.uint64, torch.int64):
        return plain.numpy()
    return plain.to(torch.float64).numpy()


def check(tensor, found):
    """Every number is the one numpy finds in double."""
    assert found is not None
    with np.errstate(all="ignore"):
        wide = doubles(tensor).reshape(-1)
        absolute = np.abs(wide) if np.iscomplexobj(wide) else wide.astype(np.float64)
        assert (found.nan, found.inf) == (np.isnan(absolute).sum(), np.isinf(absolute).sum())
        assert (found.zeros, found.counted) == ((absolute == 0).sum(), tensor.numel())
        assert found.kind == "exact"
        if tensor.dtype in INTEGERS:
            assert found.norm is None
        else:
            finite = absolute[np.isfinite(absolute)]
            size = np.abs(finite).max(initial=0) or 1.0
            norm = single(size * math.sqrt(((finite / size) ** 2).sum()))
            norm = math.nan if found.nan else math.inf if found.inf else norm
            assert same(found.norm, norm) or abs(found.norm - norm) <= MOST_ERROR * norm, (found.norm, norm)
        if np.iscomplexobj(wide):
            assert (found.sum, found.min, found.max) == (None, None, None)
            return
        assert same(found.min, single(np.fmin.reduce(wide)))
        assert same(found.max, single(np.fmax.reduce(wide)))
        total, scale = single(absolute.sum()), np.abs(absolute).sum()
        if math.isinf(scale) and not found.inf:
            return  # finite, but partial sums overflow in one order and not in another
        assert same(found.sum, total) or abs(found.sum - total) <= MOST_ERROR * scale, (found.sum, total)


def make_tensor(dtype, count, seed=0):
    numbers = torch.Generator().manual_seed(seed + count)
    if dtype is torch.bool:
        return torch.rand(count, generator=numbers) > 0.4
    if dtype in INTEGERS:
        least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        spread = torch.randint(max(least, -(2**62)), min(most, 2**62), (count,), generator=numbers)
        spread[::7] = 0
        spread[: count // 3] = least if count % 2 else 0
        return spread.to(dtype)
    if dtype in COMPLEX:
        return torch.view_as_complex(torch.randn(count, 2, generator=numbers, dtype=torch.float64)).to(dtype)
    values = torch.randn(count, generator=numbers, dtype=torch.float64)
    values[::5] = 0
    return values.to(dtype)


@by_kernel
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, *COMPLEX], ids=lambda dtype: str(dtype)[6:])
def test_each_dtype_at_each_length(way, dtype):
    for count in COUNTS:
        tensor = make_tensor(dtype, count)
        check(tensor, reduced(tensor))


NOT_FINITE = {
    "nan": [math.nan],
    "inf": [math.inf],
    "minus inf": [-math.inf],
    "both": [math.inf, -math.inf],
    "all": [math.nan, math.inf, -math.inf, -0.0],
}
OF_SINGLES = {"huge": [1e30, -3e30], "tiny": [1e-30, -2e-30], "denormal": [1e-40, -3e-42]}
"""Their squares are beyond float32, or below it."""

OF_DOUBLES = {
    "beyond a square": [1e200, -1e250],
    "below a square": [1e-170, -1e-200],
    "least": [5e-324, 1e-310],
    "most": [1.7e308, -1.7e308],
}
ODD = {
    torch.float32: NOT_FINITE | OF_SINGLES,
    torch.float64: NOT_FINITE | OF_DOUBLES,
    torch.float16: NOT_FINITE | {"denormal": [2**-24, -(2**-15)], "most": [65504.0, -65504.0]},
    torch.bfloat16: NOT_FINITE | OF_SINGLES,
    torch.complex64: NOT_FINITE | OF_SINGLES,
    torch.complex128: NOT_FINITE | OF_DOUBLES,
}
"""The numbers that a dtype's kernel reads in another way than usual ones."""


@by_kernel
@pytest.mark.parametrize("dtype", ODD, ids=lambda dtype: str(dtype)[6:])
def test_odd_numbers_wherever_they_stand(way, dtype):
    for name, odd in ODD[dtype].items():
        values = torch.tensor(odd, dtype=torch.float64)
        for count in (1, 4, 17, 600, 5000):
            tensor = make_tensor(dtype, count)
            for at in (0, count // 2, count - 1):
                tensor[at] = values[at % len(odd)].to(dtype)
            every = values.repeat(count)[:count].to(dtype)
            for kind, shown in (("among others", tensor), ("alone", every)):
                with explained(f"{count} elements, {name} {kind}"):
                    check(shown, reduced(shown))


@contextlib.contextmanager
def explained(what):
    """Say which of several tensors a check fails for."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(what) from error


def layouts(base):
    """Views of a tensor of 6 x 40 x 50 that lie in memory in all the ways there are."""
    yield "plain", base
    yield "transposed", base.permute(2, 0, 1)
    yield "rows", base[:, ::3, :]
    yield "columns", base[:, :, 7:9]
    yield "column", base[2, :, 3]
    yield "one", base[1, 2, 3]
    yield "expanded", base[:, :1, :].expand(6, 30, 50)
    yield "expanded inside", base[:, :, :1].expand(6, 40, 9)
    yield "all of one", base[:1, :1, :1].expand(70, 80, 90)
    yield "windows", base.reshape(-1).as_strided((500, 600), (3, 1))
    yield "offset", base.reshape(-1)[5:1500]
    yield "flipped twice", base.flip(0)
    yield "long rows", base.reshape(6, -1)[:, 3:1900]
    yield "empty dimensions of one", base[:, None, :, None, 4:8]
    yield "many dimensions", base.reshape(2, 3, 2, 2, 10, 5, 5, 2).permute(7, 0, 6, 1, 5, 2, 4, 3)


@by_view
@pytest.mark.parametrize(
    "dtype",
    [torch.bool, torch.float16, torch.float32, torch.complex64, torch.complex128],
    ids=lambda dtype: f"{dtype.itemsize} bytes",
)
def test_each_layout(way, dtype):
    for name, view in layouts(make_tensor(dtype, 12_000).reshape(6, 40, 50)):
        with explained(name):
            check(view, reduced(view))
            if view.numel() <= 15_000:
                assert tensor_memory.elements(view, 20_000) == view.contiguous().numpy().tobytes()


@by_view
def test_an_image_batch_with_its_channels_last(way):
    tensor = torch.randn(3, 5, 7, 9).contiguous(memory_format=torch.channels_last)
    check(tensor, reduced(tensor))
    assert tensor_memory.elements(tensor, 3 * 5 * 7 * 9) == tensor.contiguous().numpy().tobytes()


@by_view
def test_what_is_lazily_negative_or_conjugated_is_read_as_it_is(way):
    for count in (1, 2, 40):
        turned = make_tensor(torch.complex64, count).conj()
        for tensor in (turned, turned.imag, turned.real, torch._neg_view(turned), torch._neg_view(turned[:1])):
            check(tensor, reduced(tensor))
            expected = tensor.resolve_conj().resolve_neg().contiguous().numpy().tobytes()
            assert tensor_memory.elements(tensor, 64) == expected
    halves = torch._neg_view(make_tensor(torch.bfloat16, 1))
    assert tensor_memory.elements(halves, 64) == halves.resolve_neg().view(torch.int16).numpy().tobytes()


@by_engine
def test_a_large_tensor_is_sampled_by_one_block(way):
    tensor = torch.arange(10_000.0)
    found = reduced(tensor, statistic_elements=5000, block_elements=100)
    assert (found.counted, found.max, found.kind) == (100, 99.0, "sampled")
    across = torch.arange(10_000.0).reshape(100, 100).t()
    found = reduced(across, statistic_elements=5000, block_elements=70)
    assert (found.counted, found.max, found.kind) == (100, 9900.0, "sampled")


@by_engine
def test_an_address_that_is_no_multiple_of_the_item_is_read_right(way):
    raw = bytearray(np.arange(3001, dtype=np.float32).tobytes())
    shifted = bytearray(b"\0" + raw)
    tensor = torch.frombuffer(memoryview(shifted)[1:], dtype=torch.float32)
    assert tensor.data_ptr() % 4
    check(tensor, reduced(tensor))
    numbers = torch.frombuffer(memoryview(bytearray(b"\0" + raw))[1:], dtype=torch.int32)
    check(numbers, reduced(numbers))


@by_view
def test_a_copy_on_write_tensor_stays_one(way):
    tensor = torch.randn(700)
    lazy = tensor._lazy_clone()
    assert torch._C._is_cow_tensor(lazy)
    check(tensor, reduced(tensor))
    assert reduced(lazy) == reduced(tensor)
    assert tensor_memory.elements(lazy, 700) == tensor.numpy(force=True).tobytes() or torch._C._is_cow_tensor(lazy)
    assert torch._C._is_cow_tensor(lazy)


@by_view
def test_what_has_no_elements_in_memory_is_none_and_no_crash(way):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantised = torch.quantize_per_tensor(torch.randn(8), 0.1, 0, torch.quint8)
        ragged = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)])
        jagged = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)], layout=torch.jagged)
        rows = torch.eye(4).to_sparse_csr()
    with torch._subclasses.FakeTensorMode():
        fake = torch.empty(5)
    odd = {
        "sparse": torch.eye(4).to_sparse(),
        "rows": rows,
        "meta": torch.empty(5, device="meta"),
        "mkldnn": torch.randn(4, 4).to_mkldnn(),
        "quantised": quantised,
        "nested": ragged,
        "jagged": jagged,
        "fake": fake,
        "float8": torch.randn(8).to(torch.float8_e4m3fn),
        "zero": torch._efficientzerotensor(5),
    }
    for name, tensor in odd.items():
        assert (reduced(tensor), tensor_memory.elements(tensor, 64), histograms.sizes(tensor)) == (None, None, None), (
            name
        )
    assert gradients.norm_of(list(odd.values())[:4]) is None


@by_view
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, when jvp is first used
def test_what_functorch_wraps_is_none_and_no_crash(way):
    seen = []

    def look(x):
        seen.append((reduced(x), tensor_memory.elements(x, 64)))
        return (x * x).sum()

    torch.func.vmap(look)(torch.ones(3, 4))
    torch.func.grad(look)(torch.ones(4))
    torch.func.jvp(look, (torch.ones(4),), (torch.ones(4),))
    torch.func.hessian(look)(torch.ones(4))
    assert len(seen) == 4
    assert set(seen) == {(None, None)}


@by_view
def test_leaf_result_inference_and_empty_tensors(way):
    leaf = torch.randn(9, requires_grad=True)
    with torch.inference_mode():
        inference = torch.randn(9)
    for tensor in (leaf, leaf * 2, inference, torch.nn.Parameter(torch.randn(3, 3))):
        check(tensor, reduced(tensor))
        assert tensor_memory.elements(tensor, 64) == tensor.detach().numpy().tobytes()
        assert tensor_memory.elements(tensor, 8) is None
    for shape in ((0,), (3, 0, 5)):
        assert reduced(torch.empty(shape)) is None
        assert tensor_memory.elements(torch.empty(shape), 64) == b""
    assert tensor_memory.elements(torch.empty(0, 100), 64) is None
    check(torch.tensor(3.5), reduced(torch.tensor(3.5)))


@by_view
def test_reading_runs_no_operation_takes_no_number_and_changes_no_version(way):
    tensor = torch.randn(5000, requires_grad=True) * 1
    before = tensor._version, torch._C._autograd._get_sequence_nr(), torch.get_rng_state()
    with torch.profiler.profile() as seen:
        reduced(tensor)
        tensor_memory.elements(tensor, 5000)
        histograms.sizes(tensor)
    assert [event.key for event in seen.key_averages() if event.key.startswith("aten")] == []
    assert (tensor._version, torch._C._autograd._get_sequence_nr()) == before[:2]
    assert torch.equal(torch.get_rng_state(), before[2])


@by_kernel
def test_denormal_numbers_are_left_on(way):
    reduced(torch.full((5000,), 1e-40))
    assert float(torch.tensor(1e-40) / 2) > 0


@by_engine
def test_the_norm_of_many_tensors_is_that_of_all_their_elements(way):
    tensors = [make_tensor(torch.float32, count) for count in (3, 700, 5000)]
    tensors += [make_tensor(torch.float64, 50).reshape(5, 10).t(), make_tensor(torch.bfloat16, 90)]
    whole = torch.cat([tensor.reshape(-1).double() for tensor in tensors])
    assert gradients.norm_of(tensors) == pytest.approx(float(whole.norm()), rel=1e-6)
    assert gradients.norm_of([]) is None
    assert gradients.norm_of([torch.full((3,), 1e30), *tensors]) == pytest.approx(3**0.5 * 1e30, rel=1e-6)
    assert gradients.norm_of([*tensors, torch.tensor([math.inf, 1.0]), torch.eye(2).to_sparse()]) == math.inf
    assert math.isnan(gradients.norm_of([torch.tensor([math.nan, math.inf]), *tensors]))


@by_kernel
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.bool], ids=lambda dtype: str(dtype)[6:])
def test_a_histogram_counts_each_element_once_between_its_powers_of_two(way, dtype):
    tensor = torch.cat([make_tensor(torch.float64, 5000), 2.0 ** torch.arange(-50.0, 30.0)]).to(dtype)
    found = histograms.sizes(tensor)
    absolute = np.abs(doubles(tensor))
    finite = absolute[np.isfinite(absolute)]
    for k, count in enumerate(found.counts):
        low = 2.0 ** (histograms.LOWEST + 2 * k)
        assert count == ((finite >= low) & (finite < 4 * low)).sum(), k
    assert found.zeros == (finite == 0).sum()
    assert found.nonfinite == absolute.size - finite.size
    assert sum(found.counts) + found.zeros + found.below + found.above + found.nonfinite == tensor.numel()


@by_engine
def test_a_histogram_of_a_view_and_of_a_complex_tensor(way):
    base = make_tensor(torch.float32, 600).reshape(20, 30)
    assert histograms.sizes(base.t()[:, :1].expand(30, 4)) == histograms.sizes(base[0].repeat(4))
    assert histograms.sizes(base.t()) == histograms.sizes(base)
    assert histograms.sizes(make_tensor(torch.complex64, 5)) is None


@by_kernel
def test_the_norm_of_tensors_together(way):
    """Shorter than a vector, than a part of a kernel and longer than both; squares that are too large, too small, none."""
    for size, scale in itertools.product((1, 7, 511, 8193, 70_001), (1.0, 1e30, 1e-14, 1e-25, 0.0)):
        torch.manual_seed(size)
        tensor, sparse = torch.randn(size) * scale, torch.zeros(3, 9000)
        sparse[1, 5] = scale
        strided = sparse.t()[5:6]
        expected = math.hypot(*(float(part.double().norm()) for part in (tensor, sparse, strided)))
        with explained(f"{size} elements of about {scale}"):
            assert gradients.norm_of([tensor, sparse, strided]) == pytest.approx(expected, rel=1e-6, abs=0)


@by_kernel
def test_the_norm_of_what_is_not_finite(way):
    for odd, at in itertools.product((math.inf, -math.inf, math.nan), (0, 5000, 8999)):
        tensor = torch.ones(9000)
        tensor[at] = odd
        norm = gradients.norm_of([torch.ones(3), tensor])
        assert math.isnan(norm) if math.isnan(odd) else norm == math.inf, (odd, at)
