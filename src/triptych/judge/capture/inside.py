"""The sandbox's side of a capture: runs a candidate's Python on arrays without data, and says what it asked for.

It shares its process with the candidate, so nothing that it says can be relied on: `outside.py` checks the plans.
"""

from __future__ import annotations

import ast
import io
import linecache
import pickle
import random
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from triptych.core.errors import ArgumentError, UnsupportedFeature
from triptych.core.handles import Handle
from triptych.core.plan import Allocate, Plan
from triptych.core.relocate import relocated
from triptych.core.serialise import digest, pack
from triptych.core.source import SourceLocation
from triptych.execution.capture import CapturedArray, LibraryWork, Recording, recording
from triptych.execution.profile import Selection, select
from triptych.judge.capture.failures import Failure, failure_of
from triptych.judge.capture.outside import output_mistake
from triptych.judge.capture.request import CaptureRequest, CaptureSize
from triptych.judge.capture.tampering import changed_since, identities
from triptych.judge.claims import join
from triptych.judge.formats.format import Call, Format
from triptych.judge.formats.table import format_of
from triptych.languages import nki
from triptych.languages.triton.activation import activated
from triptych.languages.triton.torch_support import captured_tensors

_MODULE = "candidate"
_MOST_PRINTED = 4096


@dataclass(frozen=True, slots=True)
class _Found:
    """What a candidate asked for, of all sizes."""

    plans: tuple[Plan, ...]
    library: tuple[LibraryWork, ...]
    differs: bool
    tampered: tuple[str, ...]


class _BoundedText(io.TextIOBase):
    """What is printed, the end of it."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text = (self.text + text[-_MOST_PRINTED:])[-_MOST_PRINTED:]
        return len(text)


class _Unreadable(Exception):
    """The source is no Python."""


class _WrongOutput(Exception):
    """What the candidate returned is not what was asked for."""


def capture_task(payload: bytes) -> bytes:
    """A pickled `CaptureRequest` to a reply (`outside.read_reply`); whatever the candidate raises is in it."""
    request: CaptureRequest = pickle.loads(payload)
    printed = _BoundedText()
    with redirect_stdout(printed), redirect_stderr(printed):
        found = captured(request)
    text = printed.text.encode("utf-8", "replace").decode()
    if isinstance(found, Failure):
        return join({"failure": {"code": found.code, "message": found.message, **_location(found.where)}})
    library = [{"operator": work.operator, "used": int(work.used), **_location(work.where)} for work in found.library]
    header = {
        "library": library, "differs": int(found.differs), "tampered": list(found.tampered), "printed": text,
    }  # fmt: skip
    return join(header, [pack(plan) for plan in found.plans])


def _location(where: SourceLocation | None) -> dict[str, object]:
    return {} if where is None else {"file": where.file, "line": where.line}


def captured(request: CaptureRequest) -> _Found | Failure:
    """The candidate's plans, or why there are none; in this process, which it may change as it likes."""
    form = format_of(request.format)
    try:
        with activated(), _nki(), _selected(request):
            return _capture(request, form)
    except _Unreadable as problem:
        return Failure("unreadable", str(problem))
    except _WrongOutput as problem:
        return Failure("shape", str(problem))
    except BaseException as error:  # SystemExit, KeyboardInterrupt, and whatever else a candidate raises
        return failure_of(error, request.file_name)


@contextmanager
def _selected(request: CaptureRequest) -> Generator[None]:
    before = select(Selection(request.chip, request.target))
    try:
        yield
    finally:
        select(before)


@contextmanager
def _nki() -> Generator[None]:
    """Candidates import our NKI, whatever is installed."""
    was_there = sys.modules.get("nki") is nki.nki
    if not was_there:
        nki.activate(force=True)
    try:
        yield
    finally:
        if not was_there:
            nki.deactivate()


def _capture(request: CaptureRequest, form: Format) -> _Found:
    tree = _tree(request)
    _refuse_extensions(tree, request.file_name)
    wanted = form.torch or (_imports_torch(tree) if request.torch is None else request.torch)
    if wanted:
        import_module("torch")
    arrays = captured_tensors if wanted else _captured_arrays
    before = identities()
    with arrays(), recording() as prelude:
        namespace = _load(request, tree)
    calls = [form.bind(namespace, size) for size in request.sizes]
    plans: list[Plan] = []
    library: dict[LibraryWork, None] = {}
    digests: list[list[str]] = []
    for _ in range(2):  # a second call must ask for the same work
        digests.append([])
        for call, size in zip(calls, request.sizes, strict=True):
            with arrays() as make:
                plan, work = _call(prelude, partial(_on, call, make), size)
            digests[-1].append(digest(_without_places(plan)))
            library |= dict.fromkeys(work)
            if len(digests) == 1:
                plans.append(plan)
    return _Found(tuple(plans), tuple(library), digests[0] != digests[1], tuple(changed_since(before)))


@contextmanager
def _captured_arrays() -> Generator[Callable[[Handle], Any]]:
    yield CapturedArray


def _refuse_extensions(tree: ast.Module, file: str) -> None:
    """Raises `UnsupportedFeature` where the source compiles C++ with torch."""
    for node in ast.walk(tree):
        names = [getattr(node, "module", None), getattr(node, "attr", None), getattr(node, "id", None)]
        names += [one.name for one in getattr(node, "names", ()) if isinstance(one, ast.alias)]
        if any(name and name.rpartition(".")[2] in ("load_inline", "cpp_extension") for name in names):
            raise UnsupportedFeature(
                "C++ and CUDA extensions of torch (load_inline) are not supported yet",
                where=SourceLocation(file, getattr(node, "lineno", 0)),
                hint="launch Triton kernels, or CUDA kernels of tt.cuda.compile",
            )


def _tree(request: CaptureRequest) -> ast.Module:
    try:
        request.source.encode()
    except UnicodeEncodeError as problem:
        raise _Unreadable("not UTF-8") from problem
    try:
        return ast.parse(request.source, request.file_name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise _Unreadable(f"{type(problem).__name__}: {problem}") from problem


def _imports_torch(tree: ast.Module) -> bool:
    names = [one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    return any(name.partition(".")[0] == "torch" for name in names)


def _without_places(plan: Plan) -> Plan:
    """The plan as far as it must be the same in each call: it may keep memory, and allocate what it then kept."""
    return relocated(replace(plan, nodes=tuple(node for node in plan.nodes if not isinstance(node, Allocate))))


def _load(request: CaptureRequest, tree: ast.Module) -> dict[str, Any]:
    """Runs the candidate's source as a module of its own; what it defines."""
    try:
        code = compile(tree, request.file_name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise _Unreadable(f"{type(problem).__name__}: {problem}") from problem
    lines = request.source.splitlines(keepends=True)
    linecache.cache[request.file_name] = (len(request.source), None, lines, request.file_name)  # Triton reads it there
    for size in request.sizes[:1]:
        for name, source in size.arguments.modules.items() if size.arguments else ():
            exec(compile(source, f"{name}.py", "exec", dont_inherit=True), vars(_module(name, f"{name}.py")))
    module = _module(_MODULE, request.file_name)
    exec(code, vars(module))
    return vars(module)


def _module(name: str, file: str) -> ModuleType:
    sys.modules[name] = module = ModuleType(name)
    module.__file__ = file
    return module


def _call(
    prelude: Recording, call: Callable[[Sequence[Handle]], object], size: CaptureSize
) -> tuple[Plan, tuple[LibraryWork, ...]]:
    _seed()
    with recording(prelude) as made:
        result = call([made.new_input(one.name, one.kind, one.shape).handle for one in size.inputs])
        outputs = tuple(_bound(made, one) for one in _arrays(result))
    mistake = output_mistake(outputs, size.outputs)
    if mistake:
        raise _WrongOutput(mistake)
    return made.plan(outputs, [one.name for one in size.outputs]), made.library_work(outputs)


def _bound(made: Recording, result: object) -> Handle:
    try:
        return made.memory.bind(result)
    except ArgumentError as error:  # of what the solution returned, not of an argument of a launch
        raise _WrongOutput(f"the solution returned what is no array: {error.message}") from None


def _on(call: Call, make: Callable[[Handle], Any], inputs: Sequence[Handle]) -> object:
    return call([make(one) for one in inputs])


def _seed() -> None:
    """Equal candidates make equal plans."""
    random.seed(0)
    np.random.seed(0)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)


def _arrays(result: object) -> Sequence[object]:
    found: list[object] = list(result) if isinstance(result, tuple | list) else [result]  # pyright: ignore[reportUnknownArgumentType]
    for one in found:
        if not hasattr(one, "shape"):
            raise _WrongOutput(f"the solution returned a {type(one).__name__}; expected an array or a tuple of arrays")
    return found
