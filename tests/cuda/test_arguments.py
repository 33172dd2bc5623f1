from __future__ import annotations

import ctypes
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
import torch

import triptych as tt
from triptych.core.errors import ArgumentError
from triptych.core.handles import Handle
from triptych.core.plan import Argument, Scalar, Struct
from triptych.execution.memory import Memory
from triptych.languages.arguments import convert, slots_of
from triptych.languages.parameters import Parameter, parse_type


@dataclass(frozen=True, slots=True)
class Ptx:
    type: str
    size: int


SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "s32": 4, "s64": 8, "f32": 4, "f64": 8, "f16": 2, "b32": 4, "b64": 8}


def one(ptx: str, value: object, ctype: str | None = None, size: int | None = None) -> Argument:
    known = (Parameter("x", parse_type(ctype)),) if ctype else ()
    return convert("k", slots_of("k", (Ptx(ptx, size or SIZES[ptx]),), known), (value,), Memory())[0]


def scalar(ptx: str, value: object, ctype: str | None = None) -> int | float:
    argument = one(ptx, value, ctype)
    assert isinstance(argument, Scalar)
    assert argument.dtype.bytes == SIZES[ptx]
    return argument.value


@pytest.mark.parametrize(
    ("ptx", "ctype", "value", "stored"),
    [
        ("u32", None, -1, 2**32 - 1),
        ("u32", None, 2**32 - 1, 2**32 - 1),
        ("u32", "int", -(2**31), 2**31),
        ("u32", "unsigned int", 2**32 - 1, 2**32 - 1),
        ("s32", None, -5, -5),
        ("u8", "bool", True, 1),
        ("u8", "bool", np.False_, 0),
        ("u8", "char", -128, 128),
        ("u8", "unsigned char", 255, 255),
        ("u16", "short", np.int16(-2), 65534),
        ("u64", "long long", -1, 2**64 - 1),
        ("u64", "size_t", 2**64 - 1, 2**64 - 1),
        ("u64", None, 0, 0),
        ("b32", "int", -1, -1),
        ("b32", None, 7, 7),
        ("b32", "float", 1.5, 1.5),
        ("u32", None, np.uint64(7), 7),
        ("f32", None, 3, 3.0),
        ("f32", "float", 0.1, float(np.float32(0.1))),
        ("f32", None, np.float16(1.5), 1.5),
        ("f32", None, ml_dtypes.bfloat16(2.5), 2.5),
        ("f32", None, float("inf"), float("inf")),
        ("f32", None, True, 1.0),
        ("f64", "double", 0.1, 0.1),
        ("f64", None, np.int8(-3), -3.0),
        ("f16", None, 65504, 65504.0),
    ],
)
def test_numbers(ptx: str, ctype: str | None, value: object, stored: float) -> None:
    assert scalar(ptx, value, ctype) == stored
    assert type(scalar(ptx, value, ctype)) is type(stored)


@pytest.mark.parametrize(
    ("ptx", "ctype", "value", "message"),
    [
        ("u32", "int", 2**31, r"argument 0 \(x\): expected int \(-2147483648 to 2147483647\), got 2147483648"),
        ("u32", "unsigned", -1, r"expected unsigned \(0 to 4294967295\), got -1"),
        ("u32", None, 2**32, r"argument 0: expected .u32 \(-2147483648 to 4294967295\), got 4294967296"),
        ("u8", "bool", 2, r"expected bool \(0 to 1\), got 2"),
        ("u8", "char", 200, r"expected char \(-128 to 127\), got 200"),
        ("u64", "long", 2**63, "expected long"),
        ("u32", "int", 3.0, r"expected int, got float 3.0"),
        ("u32", "int", np.float32(3), r"expected int, got float32"),
        ("u32", "int", "3", "expected int, got str '3'"),
        ("u32", "int", None, "expected int, got NoneType"),
        ("u32", "int", [3], "expected int, got list"),
        ("u32", "int", 3j, "expected int, got complex"),
        ("f32", "float", 1e39, "expected float, got 1e\\+39, which lies beyond the largest f32"),
        ("f16", None, 65520, "which lies beyond the largest f16"),
        ("f32", "float", 10**400, "got a number beyond every float"),
        ("f32", "float", "x", "expected float, got str 'x'"),
        ("f32", "float", None, "expected float, got NoneType"),
        ("f64", "double", None, "expected double, got NoneType"),
        ("f64", "double", 1j, "expected double, got complex"),
        ("f64", "double", np.zeros(3), r"expected double, got a float64\[3\] array"),
        ("u32", "int", np.zeros(3), r"expected int, got a float64\[3\] array"),
        ("u64", "long", np.zeros(3), r"expected long, got a float64\[3\] array"),
        ("u64", "long", None, "expected long, got NoneType"),
        ("u64", "float*", 1.5, r"expected float\*, got float 1.5"),
        ("u64", "float*", [1.0], r"expected float\*, got list"),
    ],
)
def test_values_that_do_not_fit(ptx: str, ctype: str | None, value: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=rf"kernel 'k': .*{message}"):
        one(ptx, value, ctype)


@pytest.mark.parametrize(
    ("ptx", "ctype", "begins"),
    [
        ("u32", "int", "convert it: int(…)"),
        ("u64", "long", "convert it: int(…)"),
        ("u64", "float*", "pass a numpy array"),
        ("u64", None, "for a number: convert it: int(…); for a pointer: pass a numpy array"),
        ("u32", None, "convert it: int(…)"),
    ],
)
def test_a_float_where_none_belongs_gets_advice(ptx: str, ctype: str | None, begins: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        one(ptx, np.float32(1), ctype)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(begins)


@pytest.mark.parametrize("ctype", [None, "float*", "const float*", "void*", "Unknown*"])
def test_pointers(ctype: str | None) -> None:
    array = np.zeros(12, np.float32)
    part = one("u64", array[4:], ctype)
    assert isinstance(part, Handle)
    assert part.offset == 16
    assert scalar("u64", None, ctype) == 0
    assert scalar("u64", 0xDEAD_BEEF, ctype) == 0xDEAD_BEEF
    assert isinstance(one("u64", torch.zeros(3), ctype), Handle)
    assert isinstance(one("u64", tt.zeros(3), ctype), Handle)
    assert isinstance(one("u64", np.zeros((3, 0), np.float32), ctype), Handle)


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [
        ("float*", np.float32),
        ("const float4 *", np.float32),
        ("__half*", np.float16),
        ("half2*", np.float16),
        ("__nv_bfloat16*", ml_dtypes.bfloat16),
        ("__nv_fp8_e4m3*", ml_dtypes.float8_e4m3fn),
        ("int*", np.uint32),
        ("unsigned*", np.int32),
        ("unsigned long long*", np.int64),
        ("bool*", np.bool_),
        ("char*", np.uint8),
        ("uint8_t*", np.bool_),
        ("void*", np.float64),
        ("float**", np.uint64),
        ("std::int64_t*", np.int64),
        ("Particle*", np.float64),
        ("T const*", np.int8),
        ("float2*", np.complex64),
        ("float*", np.dtype([("x", "f4")])),
    ],
)
def test_dtypes_that_fit(ctype: str, dtype: np.typing.DTypeLike) -> None:
    assert isinstance(one("u64", np.zeros(4, dtype), ctype), Handle)


@pytest.mark.parametrize(
    ("ctype", "dtype", "expected"),
    [
        ("float*", np.float64, r"expected float32 \(float\*\), got a float64\[4\] array"),
        ("const float *__restrict__", np.float16, r"expected float32 \(const float\*\), got a float16\[4\] array"),
        ("int*", np.int64, r"expected int32 or uint32 \(int\*\), got a int64\[4\] array"),
        ("double*", np.float32, r"expected float64 \(double\*\)"),
        ("__nv_bfloat16*", np.float16, r"expected bfloat16 \(__nv_bfloat16\*\)"),
        ("float**", np.float32, r"expected int64 or uint64 \(float\*\*\)"),
        ("long*", np.int32, r"expected int64 or uint64 \(long\*\)"),
    ],
)
def test_dtypes_that_do_not_fit(ctype: str, dtype: np.typing.DTypeLike, expected: str) -> None:
    with pytest.raises(ArgumentError, match=expected):
        one("u64", np.zeros(4, dtype), ctype)


@pytest.mark.parametrize(
    ("ctype", "array", "hint"),
    [
        (
            "uint4*", np.zeros(32, np.uint8),
            "convert the values with .astype(np.uint32), or have the same bytes taken for uint32 with .view(np.uint32)",
        ),
        (
            "const int*", np.zeros((3, 8), np.int8),
            "convert the values with .astype(np.int32), or have the same bytes taken for int32 with .view(np.int32)",
        ),
        ("uint*", np.zeros(31, np.uint8), "convert the values with .astype(np.uint32)"),
        ("uint*", np.zeros((8, 2), np.uint8), "convert the values with .astype(np.uint32)"),
        ("__nv_bfloat16*", np.zeros(3, np.float64), "convert the values with .astype(ml_dtypes.bfloat16), or have the"
         " same bytes taken for bfloat16 with .view(ml_dtypes.bfloat16)"),
    ],
)  # fmt: skip
def test_other_elements_get_both_ways_out(ctype: str, array: np.ndarray, hint: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ArgumentError) as caught:
        one("u64", array, ctype)
    assert caught.value.hint == hint


def test_without_the_source_any_dtype_passes() -> None:
    assert isinstance(one("u64", np.zeros(4, np.float64)), Handle)


def test_arrays_with_gaps_are_refused() -> None:
    matrix = np.zeros((4, 6), np.float32)
    for array in (matrix[:, 1], matrix.T, matrix[::2], matrix[:, :3], matrix[::-1]):
        with pytest.raises(ArgumentError, match=r"expected a contiguous array, got strides"):
            one("u64", array, "float*")
    for array in (matrix[1:3], matrix[2], matrix[1:2, :3], matrix[:, :0]):
        assert isinstance(one("u64", array, "float*"), Handle)


def test_read_only_arrays_need_a_const_pointer() -> None:
    array = np.zeros(4, np.float32)
    array.setflags(write=False)
    with pytest.raises(ArgumentError, match=r"the array is read-only, and float\* may be written through"):
        one("u64", array, "float*")
    argument = one("u64", array, "const float*")
    assert isinstance(argument, Handle)
    assert not argument.storage.writable
    assert isinstance(one("u64", array), Handle)  # without the source, the machine will see


class Pair(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int), ("value", ctypes.c_float))


STRUCT = np.dtype([("count", "i4"), ("value", "f4")], align=True)


@pytest.mark.parametrize(
    "value",
    [
        np.array([(3, 1.5)], STRUCT)[0],
        np.array((3, 1.5), STRUCT),
        Pair(3, 1.5),
        bytes(Pair(3, 1.5)),
        bytearray(bytes(Pair(3, 1.5))),
        np.frombuffer(bytes(Pair(3, 1.5)), np.int64)[0],
    ],
)
def test_structs_by_value(value: object) -> None:
    assert one("b8", value, "Pair", size=8) == Struct(bytes(Pair(3, 1.5)))


@pytest.mark.parametrize("value", [b"1234567", 3, 1.5, None, "12345678", [1, 2], np.zeros(2, STRUCT), np.float32(1)])
def test_structs_of_another_size(value: object) -> None:
    with pytest.raises(ArgumentError, match="expected Pair by value, 8 bytes, got"):
        one("b8", value, "Pair", size=8)


@pytest.mark.parametrize("value", [1.5, np.float32(1.5), np.float16(1.5)])
def test_half_by_value(value: object) -> None:
    assert one("b8", value, "__half", size=2) == Struct(np.float16(1.5).tobytes())
    assert one("b8", value, "__nv_bfloat16", size=2) == Struct(ml_dtypes.bfloat16(1.5).tobytes())


def test_counts() -> None:
    known = (Parameter("x", parse_type("float*")), Parameter("n", parse_type("int")))
    for values in ((), (None,), (None, 1, 2)):
        with pytest.raises(ArgumentError, match=f"kernel 'k' takes 2 arguments, got {len(values)}") as caught:
            convert("k", slots_of("k", (Ptx("u64", 8), Ptx("u32", 4)), known), values, Memory())
        assert caught.value.hint == "k(float* x, int n)"
    with pytest.raises(ArgumentError) as caught:
        convert("k", slots_of("k", (Ptx("u64", 8), Ptx("b8", 12)), ()), (), Memory())
    assert caught.value.hint == "k(.u64, .b8[12])"


def test_element_type_that_no_kernel_reads() -> None:
    with pytest.raises(ArgumentError, match=r"argument 0 \(x\): expected float\*, got an array of Python objects"):
        one("u64", np.zeros(2, object), "float*")
