"""A KernelBench problem as an operator: a file with `Model`, `get_inputs` and `get_init_inputs`."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from triptych.core.errors import UnsupportedFeature, UsageError
from triptych.judge.formats.kernelbench import SEED, KernelBenchCall
from triptych.judge.formats.values import Input, filled, template_of, tensors_of
from triptych.judge.problems.reference import Reference, Tensors, listed, operator_of
from triptych.operators.operator import Operator

torch: Any = import_module("torch")


def kernelbench_problem(source: str, name: str) -> Operator:
    """The operator of a problem's source, which is run: it is trusted.

    Its inputs are the forward pass's tensors, called as its parameters, and the parameters and buffers of the model,
    called `model.` and their name. A seed decides both: what `get_inputs()` gives, and the model of `Model(*init)`.
    The model is used as it is made, so batch norm takes the statistics of its input; its buffers are left as they are.

    Args:
        source: the Python text.
        name: how the problem is called.

    Raises:
        UsageError: where the source lacks one of the three.
        UnsupportedFeature: where an input is no tensor, number or text, or results are drawn at random (dropout).
    """
    problem = _Problem(name, source, _namespace(source, name))
    return operator_of(problem.reference())


def _namespace(source: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"__name__": name}
    exec(compile(source, f"{name}.py", "exec", dont_inherit=True), found)
    for wanted in ("Model", "get_inputs", "get_init_inputs"):
        if not callable(found.get(wanted)):
            raise UsageError(f"{name}: a KernelBench problem defines `{wanted}`; this does not")
    return found


@dataclass
class _Problem:
    """A problem that has been run."""

    name: str
    source: str
    namespace: dict[str, Any]
    init: list[Any] = field(init=False)
    template: list[object] = field(init=False)
    model: Any = field(init=False)

    def __post_init__(self) -> None:
        self.init = list(self.namespace["get_init_inputs"]())
        template_of(self.init, self._no_place, self._is_tensor, "init")
        self.model = self._made(SEED)
        names = list(inspect.signature(self.model.forward).parameters)
        values = list(self.namespace["get_inputs"]())
        labels = [names[at] if at < len(names) else f"input{at}" for at in range(len(values))]
        self.template = [
            template_of(value, lambda _, place: Input(place), self._is_tensor, label)
            for value, label in zip(values, labels, strict=True)
        ]

    def reference(self) -> Reference:
        """The problem as a function of all its tensors."""
        state = {key: f"model.{key}" for key in self.model.state_dict()}
        parameters = {key for key, _ in self.model.named_parameters()}
        return Reference(
            name=self.name,
            computes=(inspect.getdoc(self.namespace["Model"]) or self.name).splitlines()[0],
            source="a KernelBench problem",
            draw=self._draw,
            compute=self._compute,
            arguments=KernelBenchCall(self.init, self.template, state),
            size={},
            texts=(self.source,),
            optional=frozenset(name for key, name in state.items() if key not in parameters),
        )

    def _made(self, seed: int) -> Any:
        torch.manual_seed(seed)
        return self.namespace["Model"](*self.init)

    def _draw(self, seed: int) -> Tensors:
        state = self._made(seed).state_dict()
        values = list(self.namespace["get_inputs"]())
        found = tensors_of(self.template, values)
        return {**found, **{f"model.{key}": one.detach() for key, one in state.items()}}

    def _compute(self, given: Tensors) -> Sequence[Any]:
        model = copy.deepcopy(self.model)
        state = {key: given[f"model.{key}"].clone() for key in self.model.state_dict()}
        floats = [one.dtype for one in given.values() if one.is_floating_point()]
        if floats and all(one == torch.float64 for one in floats):
            model = model.double()
        model.load_state_dict(state)
        copies = {name: one.clone() for name, one in given.items()}
        result: Any = model(*filled(self.template, copies, lambda _: None))
        return listed(result)

    def _no_place(self, _: Any, name: str) -> object:
        raise UnsupportedFeature(f"{self.name}: get_init_inputs gives a tensor, '{name}'; expected numbers and texts")

    @staticmethod
    def _is_tensor(value: Any) -> bool:
        return isinstance(value, torch.Tensor)
