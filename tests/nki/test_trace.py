"""The trace: serialisation, and what the machine refuses of a damaged or hostile one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from triptych.core.counters import Provenance
from triptych.core.dtypes import dtype_of
from triptych.core.errors import (
    ArgumentError,
    LaunchError,
    MemoryFault,
    NkiError,
    NkiLimitError,
    PlanError,
    TriptychError,
)
from triptych.core.handles import AddressSpace, Handle, Storage, contiguous_strides
from triptych.core.launches import Observed
from triptych.core.plan import Launch, Program, Scalar
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.languages.nki.launching.captures import Capture
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron import run_launch
from triptych.neuron.isa import from_json, hardware, to_json, verify
from triptych.neuron.isa.row import Surroundings

SPACE = AddressSpace()


@nki.jit
def kernel(a: NkiTensor, b: NkiTensor) -> NkiTensor:
    out = nl.ndarray((32, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((32, 16), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(acc, nl.load(a), nl.load(b))
    selected = nl.ndarray((32, 16), dtype=nl.float32, buffer=nl.sbuf)
    result = nl.ndarray((32, 16), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(selected, nl.exp, acc, scale=0.25)
    nisa.affine_select(result, [[1, 16]], -1, selected, float("-inf"), cmp_op=nl.greater)
    nl.store(out, result)
    return out


def handle_of(array: NDArray[Any], *, writable: bool = True) -> tuple[Handle, NDArray[np.uint8]]:
    dtype = dtype_of(array.dtype)
    storage = SPACE.place("array", array.nbytes, writable=writable)
    handle = Handle(storage, dtype, array.shape, contiguous_strides(array.shape, dtype))
    data = array.reshape(-1).view(np.uint8)
    data.flags.writeable = writable
    return handle, data


class Call:
    """A captured call with all that its launch needs; no language is involved from here on."""

    def __init__(self) -> None:
        generator = np.random.default_rng(50)
        self.a = generator.standard_normal((64, 32)).astype(np.float32)
        self.b = generator.standard_normal((64, 16)).astype(np.float32)
        self.out = np.zeros((32, 16), np.float32)
        self.capture: Capture = kernel.capture(self.a, self.b)
        pairs = [handle_of(one) for one in (self.a, self.b, self.out)]
        self.handles = tuple(handle for handle, _ in pairs)
        self.memory: dict[Storage, NDArray[np.uint8]] = {handle.storage: data for handle, data in pairs}

    def launch(self, program: Program | None = None, **changes: Any) -> Observed:  # noqa: ANN401  # fields of Launch
        launch = Launch("kernel", "kernel", (1, 1, 1), (1, 1, 1), self.handles)
        return run_launch(program or self.capture.program, replace(launch, **changes), self.memory)


def test_round_trip() -> None:
    program = Call().capture.program
    trace = from_json(program.text)
    assert to_json(trace) == program.text
    assert from_json(to_json(trace)) == trace
    assert (program.machine, program.language, program.target) == ("neuron", "nki", "trn2")
    assert kernel.capture(np.zeros((64, 32), np.float32), np.zeros((64, 16), np.float32)).program == program
    json.loads(program.text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_the_machine_needs_no_language() -> None:
    call = Call()
    record = call.launch()
    product = call.a.T.astype(np.float64) @ call.b
    rows, columns = np.arange(32)[:, None], np.arange(16)[None, :]
    expected = np.where(columns > rows, np.exp(product * 0.25), -np.inf)
    np.testing.assert_allclose(call.out, expected, rtol=1e-5)
    assert record.counters["flops.tensor.f32"].provenance is Provenance.COUNTED_NKI


def test_a_handle_is_captured_without_data() -> None:
    call = Call()
    assert kernel.capture(*call.handles[:2]).program == call.capture.program
    assert call.capture.new_outputs[0].shape == (32, 16)


def test_wrong_launches() -> None:
    call = Call()
    a, b, out = call.handles
    rows: list[tuple[dict[str, Any], type[TriptychError], str]] = [
        ({"grid": (2, 1, 1)}, LaunchError, "was made for the grid"),
        ({"block": (32, 1, 1)}, LaunchError, "a launch on a NeuronCore has a grid alone"),
        ({"cluster": (2, 1, 1)}, LaunchError, "has a grid alone"),
        ({"arguments": (a, b)}, ArgumentError, "takes 3 tensors; the launch has 2"),
        ({"arguments": (a, b, Scalar(dtype_of("f32"), 1.0))}, ArgumentError, "must be a tensor"),
        ({"arguments": (b, a, out)}, ArgumentError, "the trace was made for f32"),
        ({"arguments": (a, b, replace(out, offset=64))}, ArgumentError, "does not lie within its storage"),
        ({"arguments": (replace(a, dtype=dtype_of("s32")), b, out)}, ArgumentError, "is s32"),
    ]
    for changes, error, message in rows:
        with pytest.raises(error, match=message):
            call.launch(**changes)


def test_a_read_only_output() -> None:
    call = Call()
    handle, data = handle_of(np.zeros((32, 16), np.float32), writable=False)
    call.memory[handle.storage] = data
    with pytest.raises(MemoryFault, match="whose array is read-only") as caught:
        call.launch(arguments=(*call.handles[:2], handle))
    fault = caught.value
    assert (fault.kernel, fault.access, fault.space) == (from_json(call.capture.program.text).kernel, "store", "hbm")
    assert f"stores to `{fault.allocation}`," in fault.message
    assert (fault.thread, fault.block, fault.address, fault.bytes) == (None, None, None, None)


def _drop(document: dict[str, Any]) -> None:
    del document["tensors"]


def _schema(document: dict[str, Any]) -> None:
    document["schema"] = "other"


def _generation(document: dict[str, Any]) -> None:
    document["generation"] = "beta2"


def _huge_tile(document: dict[str, Any]) -> None:
    next(one for one in document["tensors"] if one["space"] == "sbuf")["partitions"] = 4096


def _operation(document: dict[str, Any]) -> None:
    document["programs"][0][0][0] = "dma_copi"


def _reach(document: dict[str, Any]) -> None:
    document["programs"][0][0][2]["src"]["offset"] = 1 << 40


def _negative(document: dict[str, Any]) -> None:
    document["programs"][0][0][2]["src"]["offset"] = -8


def _tensor(document: dict[str, Any]) -> None:
    document["programs"][0][0][2]["src"]["tensor"] = 99


def _engine(document: dict[str, Any]) -> None:
    document["programs"][0][2][1] = "vector"


def _attribute(document: dict[str, Any]) -> None:
    document["programs"][0][2][3]["speed"] = 9


def _operand(document: dict[str, Any]) -> None:
    del document["programs"][0][2][2]["moving"]


def _pattern(document: dict[str, Any]) -> None:
    select = next(one for one in document["programs"][0] if one[0] == "affine_select")
    select[3]["pattern"] = "everything"


def _scratch(document: dict[str, Any]) -> None:
    tensor = {"name": "big", "space": "hbm", "dtype": "f32", "partitions": 1, "free": 1 << 40, "shape": [1 << 40]}
    document["tensors"].append(tensor)


def _programs(document: dict[str, Any]) -> None:
    document["programs"] = []


def _grid(document: dict[str, Any]) -> None:
    document["grid"] = [1 << 97]


def _negative_grid(document: dict[str, Any]) -> None:
    document["grid"] = [-1, -1]


def _shape(document: dict[str, Any]) -> None:
    document["tensors"][1]["shape"] = ""


def _no_function(document: dict[str, Any]) -> None:
    next(one for one in document["programs"][0] if one[0] == "activation")[3]["function"] = None


def _no_attribute(document: dict[str, Any]) -> None:
    del next(one for one in document["programs"][0] if one[0] == "affine_select")[3]["offset"]


def _accumulate(document: dict[str, Any]) -> None:
    next(one for one in document["programs"][0] if one[0] == "nc_matmul")[3]["accumulate"] = [[1, 1]]


def _huge_number(document: dict[str, Any]) -> None:
    next(one for one in document["programs"][0] if one[0] == "activation")[2]["scale"] = 1 << 2000


def _wide(document: dict[str, Any]) -> None:
    """A tile of 32 partitions with more bytes in each than there are: others may lie beside it, none below."""
    _added(free=60_000)(document)
    region = {"tensor": len(document["tensors"]) - 1, "offset": 0, "pattern": [[60_000, 32], [1, 16]]}
    document["programs"][0].append(["memset", "vector", {"dst": region, "value": 0.0}, {}, [0, 1]])


def _added(**changes: Any) -> Callable[[dict[str, Any]], None]:  # noqa: ANN401  # columns of a tensor
    """Damage by a tile [32, 16] of SBUF, changed, that nothing names."""
    tile = {"name": "added", "space": "sbuf", "dtype": "f32", "partitions": 32, "free": 16, "shape": [32, 16]}

    def damage(document: dict[str, Any]) -> None:
        document["tensors"].append(tile | changes)

    return damage


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (_added(blocks=0), PlanError, "has 0 tiles of 16 elements together"),
        (_added(blocks=3), PlanError, "has 3 tiles of 16 elements together"),
        (_added(start=-32), PlanError, "at the partitions -32 to -1"),
        (_added(start=128), PlanError, "at the partitions 128 to 159"),
        (_wide, NkiLimitError, "take 240000 bytes of each SBUF partition"),
        (_drop, PlanError, "a damaged Neuron trace"),
        (_schema, PlanError, "schema 'other'"),
        (_generation, PlanError, "generation 'beta2'; there are beta1, current"),
        (_huge_tile, PlanError, "has 4096 partitions"),
        (_operation, TriptychError, "did you mean dma_copy"),
        (_reach, NkiError, "is accessed at elements"),
        (_negative, NkiError, "is accessed at elements"),
        (_tensor, NkiError, "one of no tensor"),
        (_engine, NkiError, "the vector engine does not execute it"),
        (_attribute, TriptychError, "unknown attribute of nc_matmul 'speed'"),
        (_operand, NkiError, "operand 'moving' is missing"),
        (_pattern, PlanError, "a damaged Neuron trace"),
        (_scratch, NkiError, "bytes of scratch tensors in HBM"),
        (_programs, PlanError, "0 programs for the grid"),
        (_grid, PlanError, "1 programs for the grid"),
        (_negative_grid, PlanError, "1 programs for the grid"),
        (_shape, PlanError, "has not as many strides as axes"),
        (_no_function, PlanError, "attribute 'function' is None; expected a str"),
        (_no_attribute, PlanError, "attribute 'offset' is None; expected a int"),
        (_accumulate, PlanError, "attribute 'accumulate' is ((1, 1),); expected a bool"),
        (_huge_number, PlanError, "a damaged Neuron trace: OverflowError"),
    ],
)
def test_damaged_traces(damage: Callable[[dict[str, Any]], None], error: type[TriptychError], message: str) -> None:
    call = Call()
    document = json.loads(call.capture.program.text)
    damage(document)
    program = replace(call.capture.program, text=json.dumps(document))
    with pytest.raises(error) as caught:
        call.launch(program)
    assert message in str(caught.value)


@nki.jit
def two_operations(a: NkiTensor) -> NkiTensor:
    out = nl.ndarray((32, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    data = nl.load(a)
    scaled = nl.ndarray((32, 16), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(scaled, data, nl.multiply, 2.0)
    nisa.scalar_tensor_tensor(scaled, scaled, nl.add, 1.0, nl.multiply, data)
    nisa.tensor_tensor_scan(scaled, scaled, data, 0.0, nl.multiply, nl.add)
    nl.store(out, scaled)
    return out


@pytest.mark.parametrize("operation", ["scalar_tensor_tensor", "tensor_tensor_scan"])
def test_only_tensor_scalar_does_without_a_second_operation(operation: str) -> None:
    text = two_operations.capture(np.zeros((32, 16), np.float32)).program.text
    trace = from_json(text)
    around = Surroundings(trace.tensors, hardware(trace.target), trace.generation)
    for instruction in trace.programs[0]:
        verify(instruction, around)
    assert next(one for one in trace.programs[0] if one.operation == "tensor_scalar").attributes["op1"] is None
    whole = next(one for one in trace.programs[0] if one.operation == operation)
    with pytest.raises(TypeError, match=f"{operation}: attribute 'op1' is None; expected a str"):
        verify(replace(whole, attributes={**whole.attributes, "op1": None}), around)


def test_other_programs() -> None:
    call = Call()
    for text in ("", "{}", "[]", "nonsense", "3"):
        with pytest.raises(PlanError, match="damaged"):
            call.launch(replace(call.capture.program, text=text))
    with pytest.raises(PlanError, match="RecursionError"):
        call.launch(replace(call.capture.program, text="[" * 100_000))
    with pytest.raises(PlanError, match="a trace for trn2 in a program for trn1"):
        call.launch(replace(call.capture.program, target="trn1"))
    with pytest.raises(PlanError, match="machine 'gpu'"):
        call.launch(replace(call.capture.program, machine="gpu"))
