"""Variables of modules that the host stores and reads, and plans that bring them along."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import triptych as tt
from triptych.core.dtypes import DTYPES
from triptych.core.plan import Scalar, SetVariable
from triptych.languages.cuda.signatures import read_variables

SOURCE = """
__constant__ float taps[17];
__constant__ int shift;
__device__ float table[4] = {1, 2, 3, 4};
__device__ unsigned int launches;
__device__ float* target;
__device__ float* targets[2];
struct Limits { int low; float high; };
__device__ Limits limits;
namespace ns { __device__ double scale = 2.5; __constant__ float2 point; }
namespace { __device__ short hidden; }
namespace other { __device__ float table[2]; }
template <class T> __device__ T one = T(1);

extern "C" __global__ void read(float* out) {
    launches += 1;
    out[0] = taps[1] + taps[16];
    out[1] = shift;
    out[2] = ns::scale + ns::point.y + hidden;
    out[3] = limits.low + limits.high;
    out[4] = table[0] + other::table[1] + one<float>;
}
extern "C" __global__ void follow(int i) { target[i] = 7; targets[1][i] += 1; }
extern "C" __global__ void add(int i) { table[i] += 100; }
extern "C" __global__ void poke(float* at) { at[1] = 50; }
template <class T> __global__ void scaled(T* out) { out[0] = T(taps[1] * ns::scale); }
"""


def module(name: str) -> tt.cuda.CudaModule:
    """Modules of one text share their variables: each test has a text of its own."""
    return tt.cuda.compile(SOURCE + f"// {name}\n", arch="sm_80")


def test_what_there_is() -> None:
    variables = module("what there is").variables
    assert {name: (one.space, one.size, str(one.dtype)) for name, one in variables.items()} == {
        "taps": ("constant", 68, "f32"),
        "shift": ("constant", 4, "s32"),
        "table": ("global", 16, "f32"),
        "launches": ("global", 4, "u32"),
        "target": ("global", 8, "u64"),
        "targets": ("global", 16, "u64"),
        "limits": ("global", 8, "None"),
        "ns::scale": ("global", 8, "f64"),
        "ns::point": ("constant", 8, "f32"),
        "(anonymous namespace)::hidden": ("global", 2, "s16"),
        "other::table": ("global", 8, "f32"),
        "one<float>": ("global", 4, "f32"),
    }
    assert len(variables) == 12
    assert variables["ns::scale"].symbol == "_ZN2ns5scaleE"
    assert variables["_ZN2ns5scaleE"].name == variables["scale"].name == "ns::scale"
    assert repr(variables["taps"]) == "<constant variable taps, 68 bytes, f32>"
    assert "ns::scale" in variables
    assert "Taps" not in variables


def test_kernels_see_what_the_host_stores_and_the_host_what_they_store() -> None:
    both = module("both ways")
    variables = both.variables
    out = np.zeros(5, np.float32)
    both["read"][1, 1](out)
    np.testing.assert_array_equal(out, [0, 0, 2.5, 0, 2])  # the initial values
    variables["taps"].copy_from(np.arange(17, dtype=np.float32))
    variables["shift"].copy_from(-3)
    variables["point"].copy_from([10, 20])
    variables["hidden"].copy_from(np.int16(5))
    variables["limits"].copy_from(np.array([(2, 0.5)], np.dtype([("low", "i4"), ("high", "f4")])))
    variables["other::table"].copy_from(np.array([0, 8], np.float32).tobytes())
    both["read"][1, 1](out)
    np.testing.assert_array_equal(out, [17, -3, 27.5, 2.5, 10])
    assert variables["launches"].numpy() == 2
    assert variables["launches"].numpy().shape == ()
    both["add"][1, 1](2)
    read = np.zeros((2, 2), np.float32)
    variables["table"].copy_to(read)
    np.testing.assert_array_equal(read, [[1, 2], [103, 4]])
    np.testing.assert_array_equal(variables["table"].numpy(), [1, 2, 103, 4])
    part = tt.zeros(2)
    variables["table"].copy_to(part, offset=8)
    np.testing.assert_array_equal(part.numpy(), [103, 4])


def test_a_part() -> None:
    taps = module("a part").variables["taps"]
    taps.copy_from(np.ones(17, np.float32))
    taps.copy_from(np.arange(8, dtype=np.float32)[::4], offset=4)  # any layout
    np.testing.assert_array_equal(taps.numpy(), [1, 0, 4, *[1] * 14])
    copy = taps.numpy()
    copy[:] = 9
    assert taps.numpy()[0] == 1


def test_arrays_of_any_kind() -> None:
    torch = pytest.importorskip("torch")
    taps = module("any kind").variables["taps"]
    taps.copy_from(torch.arange(17, dtype=torch.float32))
    assert taps.numpy()[16] == 16
    array = tt.zeros((17,))
    taps.copy_to(array)
    np.testing.assert_array_equal(array.numpy(), np.arange(17))
    taps.copy_from(array.fill_(3))
    assert set(taps.numpy()) == {3}
    shift = module("any kind").variables["shift"]
    shift.copy_from(np.uint32(4_000_000_000))  # an array of the other signedness is accepted too
    assert shift.numpy() == np.uint32(4_000_000_000).astype(np.int32)


def test_pointers() -> None:
    pointing = module("pointers")
    x, y = np.zeros(8, np.float32), np.zeros(8, np.float32)
    pointing.variables["target"].copy_from(tt.data_ptr(x))
    pointing.variables["targets"].copy_from([0, tt.data_ptr(y[2:])])
    pointing["follow"][1, 1](3)
    np.testing.assert_array_equal(np.flatnonzero(x), [3])
    np.testing.assert_array_equal(np.flatnonzero(y), [5])
    pointing["poke"][1, 1](pointing.variables["table"].data_ptr())
    assert pointing.variables["table"].numpy()[1] == 50


@pytest.mark.parametrize(
    ("name", "value", "offset", "message"),
    [
        ("taps", np.zeros(16, np.float32), None, "variable 'taps': copy_from: it has 68 bytes, got 64"),
        ("taps", np.zeros(17, np.float32), 4, "it has 68 bytes, got 68 at offset 4"),
        ("taps", np.zeros(1, np.float32), -4, "at offset -4"),
        ("taps", np.zeros(17), None, r"expected float32 elements, got a float64\[17\] array"),
        ("taps", 1e300, None, "1e[+]300 is no float32"),
        ("shift", 1.5, None, "1.5 is no int32"),
        ("shift", 1 << 40, None, "is no int32"),
        ("shift", "three", None, "expected int32 numbers or an array, got str"),
        ("shift", [[1], [1, 2]], None, "expected int32 numbers or an array, got list"),
        ("shift", [1, 2], None, "it has 4 bytes, got 8"),
        ("limits", 3, None, "expected an array, got int"),
    ],
)
def test_what_does_not_fit(name: str, value: object, offset: int | None, message: str) -> None:
    variable = module("does not fit").variables[name]
    before = variable.numpy()
    with pytest.raises(tt.UsageError, match=message) as caught:
        variable.copy_from(value, offset)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
    np.testing.assert_array_equal(variable.numpy(), before)


def test_what_cannot_be_read_into() -> None:
    table = module("read into").variables["table"]
    frozen = np.zeros(4, np.float32)
    frozen.setflags(write=False)
    with pytest.raises(tt.UsageError, match="read-only"):
        table.copy_to(frozen)
    with pytest.raises(tt.UsageError, match="it has 16 bytes, got 20"):
        table.copy_to(np.zeros(5, np.float32))
    with pytest.raises(tt.UsageError, match="expected an array, got list") as caught:
        table.copy_to([0.0] * 4)
    assert "numpy" in str(caught.value.hint)


def test_names_that_there_are_not() -> None:
    variables = module("names").variables
    with pytest.raises(tt.UnknownName, match="unknown variable 'tapes'") as caught:
        variables["tapes"]
    assert caught.value.hint == "did you mean taps?"
    twice = tt.cuda.compile(
        """
        namespace a { __device__ int n; } namespace b { __device__ int n; }
        extern "C" __global__ void k() { a::n += b::n; }
        """,
        arch="sm_80",
    ).variables
    with pytest.raises(tt.UnknownName, match="'n' is not one but 2") as caught:
        twice["n"]
    assert twice["b::n"].symbol in str(caught.value.hint)
    with pytest.raises(tt.UnknownName, match="unknown variable 'x'"):
        tt.cuda.compile('extern "C" __global__ void none() {}', arch="sm_80").variables["x"]


def test_templates_compiled_later_have_what_the_host_stored() -> None:
    late = module("templates")
    taps, out = late.variables["taps"], np.zeros(1, np.float32)
    taps.copy_from(np.full(17, 2, np.float32))
    late["scaled<float>"][1, 1](out)
    assert out[0] == 5
    taps.copy_from(np.full(17, 4, np.float32))
    late["scaled<float>"][1, 1](out)
    assert out[0] == 10


def test_units_of_templates_alone() -> None:
    templates = tt.cuda.compile(
        """
        namespace { __constant__ float factor; }
        template <class T> __global__ void one(T* out) { out[0] = factor; }
        template <class T> __global__ void two(T* out) { out[1] = 2 * factor; }
        """,
        arch="sm_80",
    )
    kernels = [templates["one<float>"], templates["two<float>"]]
    assert list(templates.variables) == ["(anonymous namespace)::factor"]
    templates.variables["factor"].copy_from(3)
    kernels.append(templates["two<double>"])
    out, wide = np.zeros(2, np.float32), np.zeros(2)
    for kernel, array in zip(kernels, (out, out, wide), strict=True):
        kernel[1, 1](array)
    assert (*out, *wide) == (3, 6, 0, 6)


def test_a_plan_brings_what_the_host_stored() -> None:
    planned = module("plan")
    out = np.zeros(5, np.float32)
    bare = planned["read"][1, 1].plan(out)
    assert len(bare.nodes) == 1
    taps = planned.variables["taps"]
    taps.copy_from(np.zeros(17, np.float32))
    taps.copy_from(np.arange(17, dtype=np.float32))  # covers the first
    taps.copy_from(np.array([50], np.float32), offset=4)
    planned["read"][1, 1](out)
    plan = planned["read"][1, 1].plan(out)
    assert [type(node).__name__ for node in plan.nodes] == ["SetVariable", "SetVariable", "Launch"]
    assert tt.plans.digest(plan) != tt.plans.digest(bare)
    assert tt.plans.digest(planned["read"][1, 1].plan(np.zeros(5, np.float32))) == tt.plans.digest(plan)
    taps.copy_from(np.full(17, -1, np.float32))  # of no matter to the plan
    shipped = tt.plans.unpack(tt.plans.pack(plan))
    assert shipped == plan
    elsewhere = np.zeros(5, np.float32)
    run = tt.plans.run_plan(shipped, {"out": elsewhere})
    np.testing.assert_array_equal(elsewhere, [66, 0, 2.5, 0, 2])
    assert run.outputs[0] is not None
    assert planned.variables["launches"].numpy() == 1  # the plan's device is another
    planned["read"][1, 1](out)
    assert out[0] == -2


def test_pointers_follow_into_a_plan() -> None:
    pointing = module("pointers in plans")
    x, y = np.zeros(8, np.float32), np.zeros(8, np.float32)
    pointing.variables["target"].copy_from(tt.data_ptr(x))
    pointing.variables["targets"].copy_from([0, tt.data_ptr(y[2:])])
    plan = pointing["follow"][1, 1].plan(3)
    assert [handle.storage.name for handle in plan.inputs] == ["target", "targets"]
    a, b = np.zeros(8, np.float32), np.zeros(8, np.float32)
    tt.plans.run_plan(tt.plans.unpack(tt.plans.pack(plan)), {"target": a, "targets": b})
    np.testing.assert_array_equal(np.flatnonzero(a), [3])
    np.testing.assert_array_equal(np.flatnonzero(b), [5])
    assert not x.any()
    assert not y.any()


def test_more_than_a_plan_may_hold() -> None:
    large = tt.cuda.compile(
        '__device__ int large[1 << 19]; extern "C" __global__ void k(int* out) { out[0] = large[5]; }', arch="sm_80"
    )
    large.variables["large"].copy_from(np.arange(1 << 19, dtype=np.int32))
    out = np.zeros(1, np.int32)
    large["k"][1, 1](out)
    assert out[0] == 5
    with pytest.raises(tt.PlanError, match=r"setvariable.*2097152 bytes of host data; at most 1048576"):
        tt.plans.pack(large["k"][1, 1].plan(out))


def test_variables_of_ptx() -> None:
    text = module("of PTX").ptx
    ptx = tt.ptx.compile(text)
    variable = ptx.variables["taps"]
    assert (variable.size, variable.space, variable.dtype) == (68, "constant", None)
    assert str(ptx.variables["shift"].dtype) == "u32"
    variable.copy_from(np.full(17, 3, np.float32))
    ptx.variables["shift"].copy_from(-1)
    out = np.zeros(5, np.float32)
    ptx["read"][1, 1](out)
    np.testing.assert_array_equal(out[:2], [6, -1])
    assert variable.numpy().dtype == np.uint8


def test_a_plan_of_variables_that_there_are_not() -> None:
    plan = module("broken plans")["read"][1, 1].plan(np.zeros(5, np.float32))
    for node, message in (
        (SetVariable("read", "tapes", 0, ()), "program 'read' has no variable 'tapes'"),
        (SetVariable("read", "taps", 68, (one_float(),)), "bytes 68 to 72 do not lie in variable 'taps', which has 68"),
        (SetVariable("red", "taps", 0, ()), "no program 'red'"),
        (SetVariable("read", "taps", -1, ()), "variable 'taps': offset -1"),
    ):
        broken = tt.plans.Plan((node, *plan.nodes), plan.programs, plan.inputs, plan.outputs)
        with pytest.raises(tt.PlanError, match=message):
            tt.plans.run_plan(broken, {"out": np.zeros(5, np.float32)})


def one_float() -> Scalar:
    return Scalar(DTYPES["f32"], 1.0)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("__constant__ float c[N];", {"c": "f32"}),
        ("static __device__ const unsigned int n = 4, *p, q[2] = {1, 2};", {"n": "u32", "p": "u64*", "q": "u32"}),
        ("__device__ __align__(16) std::uint8_t bytes[1 << 4];", {"bytes": "u8"}),
        ("__constant__ __device__ float4 v;", {"v": "f32"}),
        ("__device__ Foo<int, 3> foo; __managed__ long long m;", {"foo": None, "m": "s64"}),
        ("__device__ float f(float x) { return x; } __device__ int i = f(3);", {"i": "s32"}),
        ("struct S { __device__ S& operator=(const S& o) { return *this; } };", {}),
        ("__device__ half h{1};\n// __device__ int commented;", {"h": "f16"}),
        ("namespace a { __device__ int n; } namespace b { __device__ float n; }", {"n": "doubt"}),
        ("__device__ int cut[", {}),
    ],
)
def test_declarations(source: str, expected: dict[str, str | None]) -> None:
    found = {
        name: "doubt" if one is None else one.element and f"{one.element}{'*' if one.pointer else ''}"
        for name, one in read_variables(source).items()
    }
    assert found == expected


def test_a_type_in_a_header(tmp_path: Path) -> None:
    (tmp_path / "tables.cuh").write_text("__constant__ float table[4];\n")
    path = tmp_path / "kernel.cu"
    path.write_text('#include "tables.cuh"\nextern "C" __global__ void k(float* x) { x[0] = table[1]; }\n')
    assert str(tt.cuda.compile(path, arch="sm_80").variables["table"].dtype) == "f32"
