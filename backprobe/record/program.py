"""What ran: its source files, the sites in them, the threads, and the environment."""

from typing import Annotated, Literal

import msgspec

from backprobe.record.fields import Bytes, Col, Count, Id, Int, Line, Name, Names, Path, Row, SourceText, TailText, Text

SiteKind = Literal["assign", "return", "call", "inplace", "for", "enter", "grad-read", "statement", "module"]


class Source(Row, frozen=True, kw_only=True):
    """One file of the user's program.

    Attributes:
        source: Its number.
        path: Relative to the project, POSIX.
        sha256: Hex digest of the UTF-8 text.
        text: The text as it was compiled; "" where it was too long to keep.
        rewritten: Its statements carry taps; if false, `why` says why not.
    """

    source: Id
    path: Path
    sha256: Annotated[str, msgspec.Meta(max_length=64)]
    text: SourceText
    rewritten: bool = True
    why: Text | None = None


class Site(Row, frozen=True, kw_only=True):
    """A statement or expression of the user's files.

    Attributes:
        line, col, end_line, end_col: Its region; 1-based, `end_col` exclusive, columns in code points.
        function: Qualified name of the enclosing function, "<module>" at top level.
        loop_line: First line of the innermost enclosing loop in the same function; None outside any.
        targets: Names the statement binds, in source order: `x`, `self.h`, `losses[-1]`.
        reads: Names the statement reads.
    """

    site: Id
    source: Id
    line: Line
    col: Col
    end_line: Line
    end_col: Col
    kind: SiteKind
    function: Name = "<module>"
    loop_line: Line | None = None
    targets: Names = ()
    reads: Names = ()


class Thread(Row, frozen=True, kw_only=True):
    """A thread in which something was recorded; `first_seq` is its autograd sequence number then."""

    thread: Id
    name: Name
    main: bool
    first_seq: Count = 0


class Stream(Row, frozen=True, kw_only=True):
    """What the program printed, where the streams are ours to read.

    Attributes:
        name: stdout or stderr.
        tail: The end of it, at most 64 KiB of text.
        total_bytes: All of it.
    """

    name: Literal["stdout", "stderr"]
    tail: TailText
    total_bytes: Bytes


class Environment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the program ran.

    Attributes:
        torch: `torch.__version__`; None if torch was never imported.
        devices: Names of the accelerators that were visible, in order.
        tap: Which build of the taps ran.
        node_budget: Live autograd nodes that may be wrapped at once; beyond it the record says `truncated`.
        cuda: CUDA version torch was built for. None: none. rocm: likewise.
        device_bytes: Memory of each of `devices`. interop_threads: between operators.
        cpu_capability: The instruction set torch uses. None: not asked.
        cudnn: Its version. None: not there.
        matmul_precision: `torch.get_float32_matmul_precision()`. None: not asked.
        cudnn_benchmark, allow_tf32: None: not asked.
        seeds: Seeds of other generators by name, `cuda:0`, `numpy`, `python`, where the program or we set them.
        sampling: Which steps were captured in full, in words. None: all.
        variables: Allow-listed environment variables (TORCH_*, PYTORCH_*, CUDA_LAUNCH_BLOCKING, OMP_NUM_THREADS).
    """

    python: Name
    platform: Name
    torch: Name | None = None
    torch_git: Name | None = None
    devices: Names = ()
    threads: Count = 1
    default_dtype: Name = "torch.float32"
    deterministic: bool = False
    anomaly_mode: bool = False
    initial_seed: Int | None = None
    argv: Annotated[tuple[Text, ...], msgspec.Meta(max_length=1024)] = ()
    tap: Literal["python", "c"] = "python"
    stack_bytes: Count = 0
    node_budget: Count = 0
    variables: dict[Name, Text] = msgspec.field(default_factory=dict[Name, Text])
    cuda: Name | None = None
    rocm: Name | None = None
    device_bytes: Annotated[tuple[Bytes, ...], msgspec.Meta(max_length=4096)] = ()
    interop_threads: Count | None = None
    cpu_capability: Name | None = None
    cudnn: Count | None = None
    cudnn_benchmark: bool | None = None
    allow_tf32: bool | None = None
    matmul_precision: Name | None = None
    seeds: dict[Name, Int] = msgspec.field(default_factory=dict[Name, Int])
    sampling: Text | None = None
