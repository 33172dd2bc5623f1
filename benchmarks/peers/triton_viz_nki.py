"""triton-viz's two interpreters of NKI, without AWS's packages: they ask those for names, which we have too."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from harness import BenchmarkError
from triptych.languages.nki import isa, language

NAME = "triton-viz"
Kernel = Callable[..., object]
Run = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One of them: `module` has the kernels of a file over its own language; each writes its last argument."""

    module: Callable[[Path], ModuleType]
    traced: Callable[[Kernel], Run]
    """As its documentation has it, with its tracer; AWS's compiler, which Beta 2's asks first, is left out."""
    alone: Callable[[Kernel], Run] | None
    """What is behind that, where it runs without a tracer."""


def require_installed() -> None:
    """Says so where it is not.

    Raises:
        BenchmarkError: what to do.
    """
    if importlib.util.find_spec("triton_viz") is None:
        raise _missing("no module named 'triton_viz'")


def beta1() -> Interpreter:
    """The one of `import neuronxcc.nki`, which wants its tracer.

    Raises:
        BenchmarkError: where triton-viz is not installed.
    """
    names = _stand_ins("neuronxcc.nki", "language")
    viz, _ = _found(names, "triton_viz.core.simulation.nki")

    def traced(kernel: Kernel) -> Run:
        def run(*arrays: object) -> None:
            viz.clear()
            viz.trace("tracer", frontend="nki")(kernel)[1, 1, 1](*arrays)  # anew: it rewrites what it has run

        return run

    return Interpreter(lambda path: _over(path, nl=names["neuronxcc.nki.language"]), traced, None)


def beta2() -> Interpreter:
    """The one of `import nki`.

    Raises:
        BenchmarkError: where triton-viz is not installed.
    """
    names = _stand_ins("nki", "isa", "language")
    viz, simulation = _found(names, "triton_viz.core.simulation.nki_beta2")
    patches: Any = importlib.import_module("triton_viz.core.frontend.base")

    def traced(kernel: Kernel) -> Run:
        launcher = viz.trace("tracer", frontend="nki_beta2")(kernel)[1,]

        def run(*arrays: object) -> None:
            viz.clear()
            launcher(*arrays, pre_trace=False)

        return run

    def alone(kernel: Kernel) -> Run:
        def run(*arrays: object) -> None:
            scope = patches._LangPatchScope()
            simulation.nki_patch_lang(scope)
            try:
                simulation.NKIBeta2InterpretedFunction(kernel).run(*arrays, grid=(1,))
            finally:
                simulation.nki_unpatch_lang(scope)

        return run

    return Interpreter(lambda path: _over(path, nl=names["nki.language"], nisa=names["nki.isa"]), traced, alone)


def _stand_ins(root: str, *parts: str) -> dict[str, ModuleType]:
    """Modules of AWS's names with what ours have: copies, since an interpreter replaces functions in what it finds."""
    made: dict[str, ModuleType] = {}
    for name in [root[: at or None] for at in [*(at for at, one in enumerate(root) if one == "."), 0]]:
        made[name] = ModuleType(name)
        made[name].__path__ = []
    sources = {"isa": isa, "language": language}
    for part in parts:
        module = made[f"{root}.{part}"] = ModuleType(f"{root}.{part}")
        vars(module).update({name: one for name, one in vars(sources[part]).items() if not name.startswith("__")})
    for name, module in made.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(made[parent], child, module)
    return made


@contextmanager
def _named(modules: dict[str, ModuleType]) -> Generator[None]:
    """Modules by these names, as long as something is imported that looks for them."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _found(modules: dict[str, ModuleType], simulation: str) -> tuple[Any, Any]:
    """triton-viz, and its module that interprets."""
    try:
        with _named(modules):
            found = importlib.import_module(simulation)
            importlib.import_module("triton_viz.core.trace")
            return importlib.import_module("triton_viz"), found
    except ImportError as error:
        raise _missing(str(error)) from error


def _missing(what: str) -> BenchmarkError:
    return BenchmarkError(
        f"{NAME} is not installed ({what}): put its repository, and what that imports (z3-solver, anytree, pyarrow, "
        "flask …), on PYTHONPATH; it needs none of AWS's packages here"
    )


def _over(path: Path, **names: ModuleType) -> ModuleType:
    """The module of a file once more, whose language is another."""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_of_{NAME.replace('-', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    vars(made).update(names)
    return made
