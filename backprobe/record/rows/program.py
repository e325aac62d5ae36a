"""What ran: its source files, the sites in them, the threads, and the environment."""

from typing import Annotated, Literal

import msgspec

from backprobe.record.rows.fields import (
    Bytes,
    Col,
    Count,
    Id,
    Int,
    Line,
    Name,
    Names,
    Path,
    Row,
    SourceText,
    TailText,
    Text,
)

SiteKind = Literal["assign", "return", "call", "inplace", "for", "enter", "grad-read", "statement", "module"]


class Source(Row, frozen=True, kw_only=True):
    """One file of the user's program.

    Attributes:
        source: Its number.
        path: Relative to the project, POSIX.
        sha256: Hex digest of the UTF-8 text.
        text: As it was compiled; empty where it was too long to keep.
        rewritten: Its statements carry taps.
        why: Why it was not rewritten. None: it was.
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
        site: Its number.
        source: Its file.
        line: First line, 1-based.
        col: First column, 1-based, in code points.
        end_line: Last line.
        end_col: Column after the last.
        kind: assign, return, call, inplace, for, enter, grad-read, statement or module.
        function: Qualified name of the enclosing function; `<module>` at top level.
        loop_line: First line of the innermost enclosing loop in that function. None: none.
        targets: Names it binds, in source order: `x`, `self.h`, `losses[-1]`.
        reads: Names it reads.
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


class CallStack(Row, frozen=True, kw_only=True):
    """A chain of calls in the user's files: the innermost one, and the chain that it was made in.

    Attributes:
        stack: Its number.
        site: The statement that called.
        parent: The stack of the function around this statement. None: it stands at the top level of a file, or
            no further calls were followed.
    """

    stack: Id
    site: Id
    parent: Id | None = None


class Thread(Row, frozen=True, kw_only=True):
    """A thread in which something was recorded.

    Attributes:
        thread: Its number.
        name: Its name.
        main: It is the main thread.
        first_seq: Its autograd sequence number when first seen.
    """

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
        python: Version.
        platform: System and machine.
        torch: `torch.__version__`. None: torch was never imported.
        torch_git: The commit it was built from. None: as torch.
        devices: Names of the accelerators that were visible, in order.
        threads: Of torch, inside an operator.
        default_dtype: torch's name.
        deterministic: Deterministic algorithms were asked for.
        anomaly_mode: `detect_anomaly` was on.
        initial_seed: Of the default generator. None: torch was never imported.
        argv: As the program saw it.
        tap: Which build of the taps ran.
        stack_bytes: Of the smallest stack that may free a graph; 0: not known.
        node_budget: Live autograd nodes that may be wrapped at once; beyond it the record says truncated.
        variables: Allow-listed environment variables: TORCH_*, PYTORCH_*, CUDA_LAUNCH_BLOCKING, OMP_NUM_THREADS.
        cuda: Version of CUDA that torch was built for. None: none, or not asked.
        rocm: Of ROCm, likewise. None: none, or not asked.
        device_bytes: Memory of each of devices; empty: not asked.
        interop_threads: Of torch, between operators. None: not asked.
        cpu_capability: The instruction set that torch uses. None: not asked.
        cudnn: Its version as a number. None: not there, or not asked.
        cudnn_benchmark: As set. None: not asked.
        allow_tf32: For matrix products on CUDA. None: not asked.
        matmul_precision: `torch.get_float32_matmul_precision()`. None: not asked.
        seeds: Of other generators, by name: `cuda:0`, `numpy`, `python`.
        sampling: Which steps were captured in full, in words. None: all.
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
