"""A problem of GPU MODE as an operator: a folder with `reference.py` and `task.py`, and a `utils.py` there or above."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from triptych.core.errors import UsageError
from triptych.judge.formats.gpu_mode import GpuModeCall
from triptych.judge.formats.values import Input, Scratch, filled, template_of, tensors_of
from triptych.judge.problems.reference import Reference, Tensors, listed, operator_of, spec_of
from triptych.languages.triton.activation import activated
from triptych.operators.operator import Operator

torch: Any = import_module("torch")

_SHARED = ("task", "utils")
"""Modules that a submission may import."""
_ENTRY = re.compile(r"^\s*-\s*\{(.*)\}\s*$")
_PAIR = re.compile(r"""["']?(\w+)["']?\s*:\s*(-?\d+)\s*(?:,|$)""")


def gpu_mode_sizes(folder: Path, section: str = "tests") -> tuple[dict[str, int], ...]:
    """The sizes that a problem's `task.yml` lists: arguments of `generate_input`, without the seed.

    Raises:
        UsageError: where there is no such file, or it has no such list of whole numbers by name.
    """
    path, hint = folder / "task.yml", "give the size: generate_input's arguments"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=hint) from error
    found: list[dict[str, int]] = []
    inside = False
    for line in lines:
        if re.match(r"^\w", line):
            inside = line.startswith(f"{section}:")
        entry = _ENTRY.match(line)
        if inside and entry:
            found.append({name: int(value) for name, value in _PAIR.findall(entry[1]) if name != "seed"})
    if not found:
        raise UsageError(f"{path} lists no sizes under '{section}'", hint=hint)
    return tuple({tuple(one.items()): one for one in found}.values())


def gpu_mode_problem(folder: Path, size: Mapping[str, int]) -> Operator:
    """The operator of a problem at a size, whose own code is run: it is trusted.

    Its inputs are the tensors that `generate_input(**size, seed=…)` gives, called `data` with their place; memory among
    them that `ref_kernel` returns, whose contents change nothing, is the output's: a candidate gets new memory there.

    Args:
        folder: of the problem.
        size: `generate_input`'s arguments but for the seed.

    Raises:
        UsageError: where a file or a function is missing.
        UnsupportedFeature: where the data is not made of tensors, numbers and texts.
    """
    problem = _Problem(folder, dict(size))
    with activated():
        return operator_of(problem.reference())


@dataclass
class _Problem:
    """A problem that has been read."""

    folder: Path
    size: dict[str, int]

    def __post_init__(self) -> None:
        self.sources = {name: found for name in _SHARED if (found := self._source(name)) is not None}
        reference = self._source("reference")
        self.texts = (*self.sources.values(), reference or "")
        if reference is None:
            raise UsageError(f"{self.folder}: a GPU MODE problem has a reference.py; this has none")
        with self._modules():
            self.namespace = _run("reference", reference)
        for wanted in ("generate_input", "ref_kernel"):
            if not callable(self.namespace.get(wanted)):
                raise UsageError(f"{self.folder}/reference.py defines no `{wanted}`")

    def reference(self) -> Reference:
        """The problem as a function of all its tensors."""
        plain = self._template(frozenset())
        self._whole = plain
        self._inputs = self._template(self._outputs_among(plain))
        return Reference(
            name=self.folder.name,
            computes=f"what {self.folder.name}/reference.py's ref_kernel computes",
            source=f"a GPU MODE problem at {', '.join(f'{name}={value}' for name, value in self.size.items())}",
            draw=lambda seed: {name: one.cpu() for name, one in tensors_of(self._inputs, self._generate(seed)).items()},
            compute=self._compute,
            arguments=GpuModeCall(self._inputs, modules=self.sources),
            size=self.size,
            texts=self.texts,
        )

    def _source(self, name: str) -> str | None:
        for folder in (self.folder, self.folder.parent):
            path = folder / f"{name}.py"
            if path.is_file():
                return path.read_text(encoding="utf-8")
        return None

    @contextmanager
    def _modules(self) -> Generator[None]:
        """The problem's modules can be imported in the block."""
        before = {name: sys.modules.get(name) for name in self.sources}
        try:
            for name, source in self.sources.items():
                sys.modules[name] = module = ModuleType(name)
                vars(module).update(_run(name, source))
            yield
        finally:
            for name, module in before.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module

    def _generate(self, seed: int) -> Any:
        with activated():
            return self.namespace["generate_input"](**self.size, seed=seed)

    def _template(self, outputs: frozenset[str]) -> Any:
        def place(tensor: Any, name: str) -> object:
            return Scratch(spec_of(name, tensor)) if name in outputs else Input(name)

        return template_of(self._generate(0), place, lambda value: isinstance(value, torch.Tensor), "data")

    def _outputs_among(self, template: object) -> frozenset[str]:
        """Tensors of the data that the reference gives back, and gives back alike whatever they hold."""
        first = tensors_of(template, self._generate(0))
        with activated(), torch.no_grad():
            places = {one.untyped_storage().data_ptr(): name for name, one in first.items()}
            returned = [places.get(one.untyped_storage().data_ptr()) for one in listed(self._call(template, first))]
            found: set[str] = set()
            for name in filter(None, returned):
                results: list[Any] = []
                for filler in (0, 1):
                    data = {key: one.clone() for key, one in tensors_of(template, self._generate(0)).items()}
                    data[name].fill_(filler)
                    results.append([one.clone() for one in listed(self._call(template, data))])
                if all(torch.equal(one, other) for one, other in zip(*results, strict=True)):
                    found.add(name)
        return frozenset(found)

    def _call(self, template: object, tensors: Tensors) -> Any:
        data = filled(template, tensors, lambda one: torch.empty(one.shape, dtype=torch.float64, device="cuda"))
        with self._modules():
            return self.namespace["ref_kernel"](data)

    def _compute(self, given: Tensors) -> Sequence[Any]:
        with activated():
            data = {name: one.clone().cuda() for name, one in given.items()}
            wide = all(one.dtype == torch.float64 for one in data.values() if one.is_floating_point())

            def memory(one: Any) -> Any:
                kind = getattr(torch, one.kind.label)
                floating = wide and kind.is_floating_point
                return torch.empty(one.shape, dtype=torch.float64 if floating else kind, device="cuda")

            with self._modules():
                result = self.namespace["ref_kernel"](filled(self._inputs, data, memory))
            return tuple(one.cpu() for one in listed(result))


def _run(name: str, source: str) -> dict[str, Any]:
    found: dict[str, Any] = {"__name__": name}
    exec(compile(source, f"{name}.py", "exec", dont_inherit=True), found)
    return found
