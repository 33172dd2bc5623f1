"""A kernel: the author's function, the generation whose rules hold, and the grid. A call traces and launches it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from triptych.core.collection import uncollected
from triptych.core.errors import ArgumentError, BudgetExceeded, NkiError
from triptych.core.handles import Handle
from triptych.core.languages import NKI
from triptych.core.plan import Launch, Plan, Program
from triptych.core.relocate import relocated
from triptych.core.settings import settings
from triptych.core.source import SourceLocation
from triptych.execution.arrays import Array
from triptych.execution.memory import memory
from triptych.execution.run import note_stopped, run_plan_here
from triptych.languages.calling import author_location
from triptych.languages.nki.isa_functions.enums import NkiValidationError
from triptych.languages.nki.language_functions.elementwise import BINARY
from triptych.languages.nki.language_functions.movement import broadcast_to
from triptych.languages.nki.launching import kept_traces
from triptych.languages.nki.launching.captures import Capture, OutputSpec
from triptych.languages.nki.launching.purity import identity
from triptych.languages.nki.launching.target import target_hardware
from triptych.languages.nki.tracing.dtypes import Dtype, nki_dtype
from triptych.languages.nki.tracing.indexing import ARRAYS, refuse, sequence, whole
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import Tracer, active, run_traced
from triptych.neuron import full_grid
from triptych.neuron.isa import Hardware, to_json
from triptych.neuron.isa.trace import CURRENT

_LNC_MAXIMUM = 2
_Given = tuple[str, Handle, Dtype]
"""An array's argument, where its elements lie, and their dtype as the language calls it."""
_FUNCTIONS: Mapping[str, Callable[..., NkiTensor]] = {**BINARY, "broadcast_to": broadcast_to}
"""The language's functions that tensors' operators and methods stand for."""


class Kernel:
    """`kernel(*arrays)` or `kernel[grid](*arrays)` runs it; the results are numpy arrays."""

    ranks: int = 1
    """Devices that run it together."""
    target: str | None = None
    """The target that its decorator names."""
    writes_arguments: bool = False
    """Whether it may write all its arguments, as those of Beta 1's `nki.trace`."""

    def __init__(self, function: Callable[..., object], generation: str, grid: tuple[int, ...] = (1,)) -> None:
        """`generation` says whose rules hold: BETA1 or CURRENT."""
        functools.update_wrapper(self, function)
        self.function = function
        self.generation = generation
        self.grid = grid

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__name__", "kernel"))

    def on_ranks(self, count: int) -> Kernel:
        """The kernel on so many devices, for `nki.collectives`; triptych's own, AWS's simulator has one device.

        Each array that it takes or returns has a first axis of the ranks: rank r sees `array[r]`.

        Raises:
            NkiError: for a count below 1, or a kernel with a grid.
        """
        number = whole(count)
        if number is None or number < 1 or self.grid != (1,):
            raise refuse(f"{self.name}.on_ranks({count!r}): expected 1 or more, of a kernel without a grid")
        made = Kernel(self.function, self.generation, self.grid)
        made.ranks = number
        return made

    def __getitem__(self, grid: object) -> Kernel:
        """The kernel over an SPMD grid: any rank under Beta 1; else 1 or 2, the cores of a logical NeuronCore.

        Raises:
            NkiError: for a grid that the generation does not take.
        """
        extents = [whole(one) for one in sequence(grid)]
        counts = tuple(one for one in extents if one is not None and one >= 1)
        if not counts or len(counts) != len(extents):
            raise refuse(f"{self.name}[{grid!r}]: a grid has whole numbers of 1 or more")
        if self.generation == CURRENT and (isinstance(grid, tuple) or counts[0] > _LNC_MAXIMUM):
            raise NkiValidationError(
                f"NKI only supports LNC 1 or 2, but got {grid}",
                where=author_location(),
                hint="`import nki` takes kernel[1] or kernel[2]; SPMD grids are `import neuronxcc.nki`'s",
            )
        made = Kernel(self.function, self.generation, counts)
        made.target, made.writes_arguments = self.target, self.writes_arguments
        return made

    def __call__(self, *args: object, **kwargs: object) -> Any:  # noqa: ANN401  # what the author's kernel returns
        """Trace and run; returns what the kernel returns, as numpy arrays.

        Raises:
            NkiError: (and its kinds) where the language or the hardware refuses what the kernel does.
            BudgetExceeded: where its Python goes on and on; open profiles note the launch as stopped.
            ArgumentError: for arguments that the kernel does not take.
        """
        tracer = active()
        if tracer is not None:
            return self._inline(tracer.generation, args, kwargs)
        try:
            capture = self.capture(*args, **kwargs)
        except BudgetExceeded as fault:
            self._note_stopped(fault)
            raise
        return capture.results(run_plan_here(capture.plan(memory()), memory()).outputs)

    def plan(self, *args: object, **kwargs: object) -> Plan:
        """The plan that a call runs, without running it: no data in it, and it can be shipped.

        Its storages are called as the parameters that they are passed for, and lie at addresses of its own, so that
        equal calls have equal plans.

        Raises:
            NkiError: (and its kinds) where the language or the hardware refuses what the kernel does.
            BudgetExceeded: where its Python goes on and on.
            ArgumentError: for arguments that the kernel does not take.
        """
        return relocated(self.capture(*args, **kwargs).plan(memory()))

    def capture(self, *args: object, **kwargs: object) -> Capture:
        """Trace a call without running it; its arrays may be handles.

        As in a call, arrays with strides are copied if the kernel only reads them: on a device all arrays are packed,
        as `ap` expects. Handles and arrays of a plan in the making stay as they are.

        Raises:
            NkiError: (and its kinds) where the language or the hardware refuses what the kernel does.
            BudgetExceeded: where its Python goes on and on.
            ArgumentError: for arguments that the kernel does not take.
        """
        with uncollected():
            return self._captured(self._bind(args, kwargs))

    def _writes(self, argument: str) -> bool:
        """Whether the kernel may write the array that is given for it."""
        annotations: Mapping[str, object] = getattr(self.function, "__annotations__", {})
        return self.writes_arguments or "mutable_tensor" in str(annotations.get(argument, ""))

    def _note_stopped(self, fault: BudgetExceeded) -> None:
        launch = Launch(self.name, self.name, full_grid(self.grid), (1, 1, 1), ())
        note_stopped(Program.of(NKI, "", target_hardware().target), launch, fault)

    def _inline(self, generation: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """What it returns as a part of the kernel that calls it: all its instructions are that one's."""
        if self.generation != generation:
            raise refuse(
                f"kernel {self.name} of the language's generation {self.generation} is called inside one of "
                f"{generation}",
                "decorate both with the same nki.jit",
            )
        if self.grid != (1,):
            raise refuse(f"kernel {self.name} is called with a grid inside another kernel")
        bound = self._bound(args, kwargs)
        return self.function(*bound.args, **bound.kwargs)

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def _bound(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> inspect.BoundArguments:
        """The arguments by name, those that are left away too."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self.name}: {error}", where=author_location()) from None
        bound.apply_defaults()
        return bound

    def _bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> inspect.BoundArguments:
        """The same, arrays that the kernel only reads packed."""
        bound = self._bound(args, kwargs)
        return _exchanged(bound, lambda name, value: value if self._writes(name) else _packed(value))

    def _check_signature(self, bound: inspect.BoundArguments) -> None:
        """What AWS's front end takes of a kernel's arguments, and its simulator does not look at."""
        if self.generation != CURRENT or settings().nki_lenient:
            return
        for name, parameter in bound.signature.parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                raise self._refuse(
                    f"has the keyword-only argument `{name}`, which `import nki` does not take", "drop the *"
                )
            if isinstance(bound.arguments.get(name), list):
                raise self._refuse(f"is given a list for `{name}`, which `import nki` does not take", "pass a tuple")

    def _captured(self, bound: inspect.BoundArguments) -> Capture:
        hardware = target_hardware(self.target)
        arrays = tuple(value for _, value in _named(bound, self.name) if is_array(value))
        handles = self._handles(bound)
        key = self._key(bound, handles, hardware) if settings().nki_keep_traces else None
        known = None if key is None else kept_traces.find(key)
        if known is None:
            known = self._made(bound, handles, hardware)
            if key is not None:
                held = (hardware, *(value for _, value in _named(bound, self.name) if not is_array(value)))
                kept_traces.keep(key, self.function, known, held)
        return replace(known, inputs=tuple(handle for _, handle, _ in handles), arrays=arrays)

    def _key(self, bound: inspect.BoundArguments, handles: Sequence[_Given], hardware: Hardware) -> Hashable:
        """All that the trace of a pure kernel depends on; None where an argument may change without notice."""
        if not inspect.isfunction(self.function):
            return None
        try:
            values = [(name, identity(value)) for name, value in _named(bound, self.name) if not is_array(value)]
        except TypeError:
            return None
        arrays = [
            (name, dtype, self._writes(name), handle.dtype.name, handle.shape, handle.strides)
            for name, handle, dtype in handles
        ]
        kernel = (self.function, self.name, self.generation, self.grid, self.ranks)
        return (*kernel, id(hardware), settings(), tuple(bound.arguments), tuple(values), tuple(arrays))

    def _made(self, bound: inspect.BoundArguments, handles: Sequence[_Given], hardware: Hardware) -> Capture:
        """What the author's Python makes of a call."""
        tracer = Tracer(self.name, hardware, self.generation, self.grid, self.ranks, binary=_FUNCTIONS)
        inputs = [tracer.argument(one, name, dtype, writable=self._writes(name)) for name, one, dtype in handles]
        returned: list[object] = []
        for _ in range(self.ranks * prod(self.grid)):
            tracer.start_program()
            call = _substituted(bound, inputs if self.ranks == 1 else [one[tracer.rank] for one in inputs])
            returned.append(self._traced(tracer, bound, call))
        self._check_signature(bound)
        outputs = self._outputs(returned[0])
        for other in returned[1:]:
            if [one.elements.tensor for one in self._outputs(other)] != [one.elements.tensor for one in outputs]:
                raise self._refuse(
                    "returns different tensors in different programs of the grid",
                    "declare what is returned in a line that all programs run",
                )
        constants = [tensor for tensor, _ in tracer.constants]
        arguments = list({one.elements.tensor: one for one in (*inputs, *outputs, *constants)}.values())
        places = {one.elements.tensor: at for at, one in enumerate(arguments)}
        trace = tracer.finish(arguments, outputs)
        specs = tuple(
            OutputSpec(
                one.name, one.declaration.shape, one.dtype, places[one.elements.tensor],
                one.shape if self.ranks == 1 else (self.ranks, *one.shape),
            )
            for one in outputs
        )  # fmt: skip
        program = Program.of(NKI, to_json(trace), hardware.target)
        structure = tuple if isinstance(returned[0], tuple) else list if isinstance(returned[0], list) else None
        names = tuple(one.name for one in inputs)
        data = tuple((tensor.name, array) for tensor, array in tracer.constants)
        return Capture(self.name, program, full_grid(trace.grid), (), names, specs, structure, data)

    def _traced(self, tracer: Tracer, bound: inspect.BoundArguments, call: inspect.BoundArguments) -> object:
        """What the author's function returns.

        Raises:
            NkiError: where it takes an argument that is no array for a tensor.
        """
        try:
            return run_traced(tracer, functools.partial(self.function, *call.args, **call.kwargs))
        except AttributeError as error:
            for name, value in _named(bound, self.name):
                if value is not None and value is error.obj:
                    kind = type(value).__name__
                    raise NkiError(
                        f"argument `{name}` of {self.name} is a {kind}, which has no `{error.name}`",
                        where=_last_line(error),
                        hint=ARRAYS,
                    ) from None
            raise

    def _handles(self, bound: inspect.BoundArguments) -> list[_Given]:
        """The arrays that it is given, by the names of their arguments."""
        found: list[_Given] = []
        for name, value in _named(bound, self.name):
            if is_array(value):
                self._check_ranks(name, value)
                handle = value if isinstance(value, Handle) else memory().bind(value)
                if handle.shape != tuple(getattr(value, "shape", ())):  # of a type that is bound by its bytes
                    raise self._no_such_dtype(name, getattr(value, "dtype", "of no type"))
                found.append((name, handle, self._argument_dtype(handle, name)))
        return found

    def _check_ranks(self, name: str, value: object) -> None:
        shape = tuple(getattr(value, "shape", ()))
        if self.ranks > 1 and (len(shape) < 2 or shape[0] != self.ranks):
            raise ArgumentError(
                f"argument `{name}` of {self.name} has the shape {list(shape)}; on {self.ranks} ranks its first axis "
                f"must be theirs: [{self.ranks}, …]",
                where=author_location(),
            )

    def _argument_dtype(self, handle: Handle, name: str) -> Dtype:
        try:
            return nki_dtype(handle.dtype.numpy)
        except NkiError as error:
            raise self._no_such_dtype(name, handle.dtype.numpy, error.hint) from None

    def _no_such_dtype(self, name: str, dtype: object, hint: str | None = None) -> ArgumentError:
        message = f"argument `{name}` of {self.name} is {dtype}, which no NeuronCore has"
        return ArgumentError(message, where=author_location(), hint=hint)

    def _outputs(self, returned: object) -> list[NkiTensor]:
        outputs: list[NkiTensor] = []
        for one in sequence(returned) if returned is not None else []:
            if not isinstance(one, NkiTensor):
                raise self._refuse(f"returns a {type(one).__name__}", "return tensors of buffer=nl.shared_hbm")
            place = f"returns `{one.name}`, which lies in {one.buffer.name}"
            if one.on_chip:
                raise self._refuse(place, "store it to a tensor of buffer=nl.shared_hbm and return that")
            known = one.buffer.shared or one.is_argument
            if not known and (self.generation == CURRENT or prod(self.grid) > 1):
                raise self._refuse(place, "outputs must be in nl.shared_hbm")
            reshaped = one.reshaped_whole and not one.is_argument
            if not one.whole_of_rank and not reshaped:
                raise self._refuse(f"returns a part of `{one.name}`", "return the whole tensor")
            outputs.append(one)
        return outputs

    def _refuse(self, message: str, hint: str) -> NkiError:
        code = getattr(self.function, "__code__", None)
        where = SourceLocation(code.co_filename, code.co_firstlineno) if code is not None else None
        return NkiError(f"kernel {self.name} {message}", where=where, hint=hint)


def _packed(value: object) -> object:
    """A copy of an array with strides; anything else itself."""
    if isinstance(value, np.ndarray):
        array = cast("NDArray[Any]", value)
        return array if array.flags.c_contiguous else array.copy(order="C")
    if type(value) is Array:
        return value if value.handle.contiguous else value.clone()
    contiguous = getattr(value, "contiguous", None)
    return contiguous() if is_array(value) and callable(contiguous) else value


def is_array(value: object) -> bool:
    """Whether a kernel receives the argument as a tensor: anything with a shape and a dtype that is no numpy number."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def _named(bound: inspect.BoundArguments, kernel: str) -> Iterator[tuple[str, object]]:
    """The arguments one by one: those of `*args` are numbered.

    Raises:
        ArgumentError: for a list of arrays.
    """
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((f"{name}{index}", one) for index, one in enumerate(value))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            yield from value.items()
        elif isinstance(value, list | tuple) and any(is_array(one) for one in sequence(cast("object", value))):
            raise ArgumentError(
                f"argument `{name}` of {kernel} is a list of arrays", hint="give each array as an argument of its own"
            )
        else:
            yield name, value


def _last_line(error: BaseException) -> SourceLocation | None:
    """Where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else SourceLocation(trace.tb_frame.f_code.co_filename, trace.tb_lineno)


def _substituted(bound: inspect.BoundArguments, tensors: Sequence[NkiTensor]) -> inspect.BoundArguments:
    """The call with tensors in the place of arrays, in the order of `_named`."""
    left = iter(tensors)
    return _exchanged(bound, lambda _, value: next(left) if is_array(value) else value)


def _exchanged(bound: inspect.BoundArguments, exchange: Callable[[str, object], object]) -> inspect.BoundArguments:
    """The call with another value for each argument, one by one as `_named` names them."""
    arguments: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            arguments[name] = tuple(exchange(f"{name}{index}", one) for index, one in enumerate(value))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            arguments[name] = {key: exchange(key, one) for key, one in value.items()}
        else:
            arguments[name] = exchange(name, value)
    return inspect.BoundArguments(bound.signature, cast("Any", arguments))
