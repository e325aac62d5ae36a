"""Runs a program under capture: a script on disk, files in memory, or one text.

It acts like `python path argv`: `sys.argv`, `sys.path[0]`, `__main__`, the exit code; an uncaught traceback goes to
stderr exactly as Python prints it, with no frame of Backprobe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from pkgutil import get_importer
from typing import Any

import msgspec

from backprobe.capture.instrument import taps, torch_taps
from backprobe.capture.instrument.child_processes import wait_for_all
from backprobe.capture.instrument.installer import Instrument
from backprobe.capture.instrument.torch_taps import Observers
from backprobe.capture.nan_origin.deep_tier import Again, Deep
from backprobe.capture.options import Options
from backprobe.capture.output.writer import Sink
from backprobe.capture.program.child_run import Live, put_followers
from backprobe.capture.program.compiler import Tapping
from backprobe.capture.program.dynamo import Watcher
from backprobe.capture.program.exit import exit_code, keep_wrappers, own_timers, seed, show
from backprobe.capture.program.header import header
from backprobe.capture.program.importer import Compiler, FolderFinder, Hook, MemoryFinder, remember
from backprobe.capture.program.main_module import absolute, as_program, main_code, main_module, module_code
from backprobe.capture.program.pickling import Picklers
from backprobe.capture.recorder import CaptureSession
from backprobe.capture.torch_access.fence import without_ours
from backprobe.record import End, FrameReader, Record


class NoEntry(ValueError):
    """There is no such entry among the files; name one of them."""


@dataclass(frozen=True, slots=True)
class _Program:
    """What to run: its code is made under the hook, so that a syntax error is the program's own.

    Attributes:
        again: The call that runs it once more.
        folder: With a slash at its end: paths in tracebacks are written without it.
        module: Name of the module to run as `python -m` does; None: `filename` is run.
        holds_main: `filename` is a folder or an archive whose `__main__` is run.
        project: The folder whose files carry taps, as far as a child process knows it.
    """

    filename: str
    argv: tuple[str, ...]
    path0: str
    finder: Callable[[Compiler], Any]
    data: Callable[[], bytes]
    relative: str
    in_memory: bool
    again: Again
    module: str | None = None
    folder: str = ""
    holds_main: bool = False
    project: str = ""


def run_path(
    path: str | Path, argv: Sequence[str] = (), options: Options | None = None, sink: Sink | None = None,
    sources: str | Path | None = None,
) -> End:  # fmt: skip
    """Run a script, or a folder or archive with a `__main__`, as `python path argv` would, and record it.

    The returned value tells how it exited; nothing is raised, and an uncaught traceback was printed by then.
    What is imported from below `sources`, by default the script's folder, is the program's own and named from there.

    Raises:
        OSError: the script cannot be read.
        RuntimeError: another run is being captured in this process.
    """
    given = os.fspath(path)
    holds_main = get_importer(filename := absolute(given)) is not None
    data = b"" if holds_main else Path(filename).read_bytes()
    folder = Path(filename).resolve() if holds_main else Path(filename).resolve().parent
    root = folder if sources is None or holds_main else Path(sources).resolve()
    program = _Program(
        filename=filename,
        argv=(given, *argv),
        path0=filename if holds_main else str(folder),
        finder=lambda compiler: FolderFinder(root, compiler),
        data=lambda: data,
        relative=os.path.relpath(folder / Path(filename).name, folder if holds_main else root),
        in_memory=False,
        again=Again("run_path", (given, tuple(argv)), {} if root == folder else {"sources": str(root)}),
        holds_main=holds_main,
        project=str(root),
    )
    return _run(program, options or Options(), sink or (lambda _: None))


def run_module(module: str, argv: Sequence[str] = (), options: Options | None = None, sink: Sink | None = None) -> End:
    """Run a module as `python -m module argv` would, in this process, and record it; its project is the current folder.

    Raises:
        RuntimeError: another run is being captured in this process.
    """
    folder = Path.cwd()
    program = _Program(
        filename=module,
        argv=("-m", *argv),
        path0=str(folder),
        finder=lambda compiler: FolderFinder(folder, compiler),
        data=lambda: b"",
        relative=module,
        in_memory=False,
        again=Again("run_module", (module, tuple(argv))),
        module=module,
        project=str(folder),
    )
    return _run(program, options or Options(), sink or (lambda _: None))


def run_files(
    files: Mapping[str, str],
    entry: str,
    argv: Sequence[str] = (),
    options: Options | None = None,
    sink: Sink | None = None,
) -> End:
    """Run files that are only in memory; paths are relative and POSIX, siblings of the entry can be imported.

    An entry that is none of the files is a module among them, and is run as by `python -m`.

    Raises:
        NoEntry: `entry` is neither among the files nor a module of them.
        RuntimeError: another run is being captured in this process.
    """
    name = str(PurePosixPath(entry))
    texts = {str(PurePosixPath(path)): text for path, text in files.items()}
    module = None if name in texts else name
    if module is not None and not {f"{module.replace('.', '/')}{end}" for end in (".py", "/__main__.py")} & set(texts):
        raise NoEntry(f"there is no file {entry!r} among {', '.join(sorted(texts)) or 'none'}")
    text = texts.get(name, "")
    root = PurePosixPath() if module is not None else PurePosixPath(name).parent
    program = _Program(
        filename=name,
        argv=(name if module is None else "-m", *argv),
        path0=str(root),
        finder=lambda compiler: MemoryFinder(texts, root, compiler),
        data=lambda: text.encode("utf-8", "surrogatepass"),
        relative=name,
        in_memory=True,
        again=Again("run_files", (texts, name, tuple(argv))),
        module=module,
    )
    if module is None:
        remember(name, text)
    return _run(program, options or Options(), sink or (lambda _: None))


def run_folder(folder: str | Path, entry: str, argv: Sequence[str], options: Options, sink: Sink) -> End:
    """Run what lies in `folder`, the working directory, as `python entry` there, or `python -m entry`.

    What is not found beside the entry or installed is imported from the folder itself, as of files in memory.

    Raises:
        RuntimeError: another run is being captured in this process.
    """
    folder = Path(folder)
    place = folder / entry
    module = None if place.is_file() else entry
    program = _Program(
        filename=entry if module else str(place),
        argv=("-m" if module else entry, *argv),
        path0=str(folder if module else place.parent),
        finder=lambda compiler: FolderFinder(folder, compiler, at_root=True),
        data=place.read_bytes,
        relative=entry,
        in_memory=False,
        again=Again("run_folder", (str(folder), entry, tuple(argv))),
        module=module,
        folder=f"{folder}/",
    )
    return _run(program, options, sink)


def run_source(
    source: str, name: str = "snippet.py", argv: Sequence[str] = (), options: Options | None = None
) -> Record:
    """Run one text in this process, in a new namespace, and return its record."""
    reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
    run_files({name: source}, name, argv, options, reader.feed)
    record = reader.record()
    if record is None:
        raise RuntimeError("the run left no record")
    return record


def _run(program: _Program, options: Options, sink: Sink) -> End:
    deep = Deep(sink) if options.tier == "deep" else None
    recorder, instrument = CaptureSession(options, sink if deep is None else deep.sink), Instrument()
    if options.family is not None:
        recorder.sites.rows = []
    instrument.put(recorder)
    try:
        if options.family is not None:
            put_followers(instrument.swaps)
        recorder.writer.begin(header(options, program.argv, instrument.fallbacks))
        recorder.threads.here()
        seed(options.seed)
        if deep is not None:
            deep.begins()
        error = _execute(program, recorder, instrument)
        end = _finish(program, recorder, error, deep)
    finally:
        Live.now = None
        recorder.guard.apart(keep_wrappers, recorder.modules)
        recorder.guard.apart(instrument.take_out)
        recorder.guard.apart(recorder.close)
    return msgspec.structs.replace(end, own_errors=recorder.guard.errors, own_error=recorder.guard.first)


def _execute(program: _Program, recorder: CaptureSession, instrument: Instrument) -> BaseException | None:
    """Run the program; what it raised, without frames of Backprobe, or None."""
    finder = program.finder(compiler := Tapping(recorder))
    main = main_module(program.filename, in_memory=program.in_memory)
    limit, options = sys.getrecursionlimit(), recorder.options
    recorder.main, recorder.sites.folder = main, program.folder
    if recorder.options.family is not None:
        Live.now = Live(recorder, instrument, compiler, program.project, os.getpid())
    # a worker's own interpreter has a safe path; its runs have the one of a plain `python`
    is_put = not program.in_memory and bool(program.holds_main or program.folder or not sys.flags.safe_path)
    with (
        as_program(main, program.argv, program.path0 if is_put else None),
        Hook(finder),
        Watcher(recorder.guard),
        Picklers(compiler.plain, recorder.guard),
        own_timers(),
    ):
        try:
            if program.holds_main:
                code = main_code(main, compiler)
            elif program.module is not None:
                code = module_code(program.module, main)
            else:
                code = compiler(program.data(), program.filename, program.relative)
            checks = instrument.checks
            with (
                options.around(recorder) if options.around is not None else nullcontext(),
                checks.around() if checks is not None else nullcontext(),
            ):
                exec(code, main.__dict__)
        except BaseException as error:
            most = limit if isinstance(error, RecursionError) else None
            error.__traceback__ = without_ours(error.__traceback__, most=most)
            show(error, in_memory=program.in_memory)
            return error
    return None


def _finish(program: _Program, recorder: CaptureSession, error: BaseException | None, deep: Deep | None) -> End:
    """Record the last moment and return the end frame, with what Python would have exited with."""
    code = 0 if error is None else exit_code(error)
    number: int | None = None
    guard = recorder.guard
    ending = "ended" if error is None else "exited" if isinstance(error, SystemExit) else "raised"
    if error is not None and ending == "raised":
        number = guard.run(recorder.failures.uncaught, error, error.__traceback__)
    guard.run(recorder.finish)
    guard.apart(recorder.writer.flush)
    duration = guard.apart(recorder.writer.time_ns) or 0
    if recorder.options.family is not None:
        guard.apart(_settle_children, recorder)
    if deep is not None:
        guard.apart(deep.look, recorder, program.again)
    end = End(
        ending=ending,
        exit_code=code,
        exception=number,
        duration_ns=duration,
        own_ns=guard.own_ns,
        own_errors=guard.errors,
        own_error=guard.first,
    )
    guard.apart(recorder.writer.end, end)
    return end


def _settle_children(recorder: CaptureSession) -> None:
    """Wait for the child processes before the program is judged; do not record what `atexit` runs."""
    observers = Observers.now
    taps.uninstall()
    torch_taps.take_out()
    Live.now = None
    wait_for_all()
    if observers is not None:
        observers.children.settle()
    recorder.writer.flush()
