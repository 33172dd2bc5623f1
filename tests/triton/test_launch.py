"""What of an unmodified Triton launch reaches the machine: entry, grid, block, arguments, target."""

# Triton's language and host side have no types: kernels, and what was recorded of launches, are `Any` here.
# ruff: noqa: ANN001, ANN201, ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import triton
import triton.language as tl

from triptych.core.dtypes import DTYPES
from triptych.core.errors import ArgumentError, LaunchError
from triptych.core.handles import Handle
from triptych.core.plan import Scalar, Struct
from triptych.execution.arrays import zeros
from triptych.execution.profile import profile
from triptych.languages.triton import activate, tensor

jit: Any = triton.jit


@jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@jit
def copy(source, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(source + offsets))


@jit
def scale(x, factor, flag, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    if flag:
        tl.store(x + offsets, tl.load(x + offsets) * factor)


@jit
def half_scale(x, factor: tl.float16, other: tl.bfloat16, count: tl.int64, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets) * factor + other + count)


@jit
def add_pair(pair, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(pair[0] + offsets) + pair[1])


@jit
def copy_tile(source, out, M: tl.constexpr, N: tl.constexpr):
    tile = source.load([0, 0])
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], tile)


@jit
def copy_device_tile(x, out, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [M, N])
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], source.load([0, 0]))


class Pair(NamedTuple):
    array: np.ndarray[Any, Any]
    offset: int


def arrays(count: int, size: int = 4096) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(size).astype(np.float32) for _ in range(count)]


def numbers(arguments: tuple[object, ...]) -> list[int | float]:
    return [argument.value for argument in arguments if isinstance(argument, Scalar)]


def test_vector_add(recorder: Any) -> None:
    x, y, out = arrays(3)
    add[(3,)](x, y, out, 3000, BLOCK=1024)
    (launch,), (program,) = recorder.launches, recorder.programs
    assert (launch.entry, launch.grid, launch.block, launch.shared_bytes) == ("add", (3, 1, 1), (128, 1, 1), 0)
    assert (launch.cluster, launch.cooperative) == ((1, 1, 1), False)
    assert (program.machine, program.language, program.target) == ("gpu", "triton", "sm_80")
    assert ".target sm_80" in program.text
    assert program.text.count(".param .u64 .ptr .global") == 5, "three arrays and the two scratch pointers"
    pointers = launch.arguments[:3]
    assert all(isinstance(pointer, Handle) and pointer.shape == (4096,) for pointer in pointers)
    assert len({pointer.storage for pointer in pointers}) == 3
    assert numbers(launch.arguments) == [3000, 0, 0]


def test_grid_is_a_function_of_the_constants(recorder: Any) -> None:
    x, y, out = arrays(3)
    add[lambda meta: (triton.cdiv(3000, meta["BLOCK"]), np.int64(2))](x, y, out, 3000, BLOCK=256, num_warps=8)
    (launch,) = recorder.launches
    assert (launch.grid, launch.block) == ((12, 2, 1), (256, 1, 1))


def test_no_blocks_are_no_launch(recorder: Any) -> None:
    x, y, out = arrays(3)
    with pytest.warns(RuntimeWarning, match=r"grid \(0, 1, 1\) of kernel 'add' has no blocks") as caught:
        add[(0,)](x, y, out, 0, BLOCK=1024)
    assert caught[0].filename == __file__
    assert recorder.launches == []


def test_views_keep_their_offset(recorder: Any) -> None:
    x, y, out = arrays(3)
    add[(1,)](x[1:], y[::2], out, np.int32(100), BLOCK=128)
    first, second = recorder.launches[0].arguments[:2]
    assert (first.offset, first.shape) == (4, (4095,))
    assert (second.offset, second.strides) == (0, (8,))


@jit
def copy_strided(x, stride, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets * stride, mask=offsets < n), mask=offsets < n)


@pytest.mark.parametrize("of_torch", [False, True])
def test_an_array_with_gaps_is_remarked_unless_its_strides_are_passed(active: None, of_torch: bool) -> None:
    whole = np.arange(256, dtype=np.float32).reshape(64, 4)
    source: Any = pytest.importorskip("torch").from_numpy(whole) if of_torch else whole
    out = np.zeros(64, np.float32)
    with profile() as recorded:
        copy[(1,)](source[:, 1], out, BLOCK=64)
        copy_strided[(1,)](source[:, 1], 4, out, 64, BLOCK=64)
        assert np.array_equal(out, whole[:, 1])
        copy[(1,)](source[32:].reshape(-1), out, BLOCK=64)
        copy_strided[(1,)](source.T, 3, out, 20, BLOCK=64)
        copy_strided[(1,)](source.T, 3, out, 20, BLOCK=4)
        add[(1,)](source[:, 1], source[0, 0:1].reshape(()), out, 1, BLOCK=64)
    told = [launch.remarks for launch in recorded.launches]
    assert [len(remarks) for remarks in told] == [1, 0, 0, 1, 0, 1], "4 as a constant is as good"
    assert "copy got the address of `source`, an array of shape (64,) with gaps" in told[0][0]
    assert "strides (4,)" in told[0][0]
    assert "`x`, an array of shape (4, 64)" in told[3][0]
    assert "strides (1, 4)" in told[3][0]
    assert told[0][0] in recorded.launches[0].notes


def test_triptych_arrays_and_handles(recorder: Any) -> None:
    x, y = zeros(64), zeros(64)
    (out,) = arrays(1)
    add[(1,)](x, y.handle, out, 64, BLOCK=64)
    assert recorder.launches[0].arguments[:2] == (x.handle, y.handle)


def test_torch_tensors(recorder: Any) -> None:
    torch = pytest.importorskip("torch")
    x, y, out = torch.zeros(64), torch.ones(128)[64:], torch.empty(64, requires_grad=True)
    add[(1,)](x, y, out, 64, BLOCK=64)
    handles = recorder.launches[0].arguments[:3]
    assert [handle.offset for handle in handles] == [0, 256, 0]
    with pytest.raises(ArgumentError, match=r"'y' of kernel 'add'.*meta"):
        add[(1,)](x, torch.zeros(64, device="meta"), out, 64, BLOCK=64)
    with pytest.raises(ArgumentError, match=r"'x' of kernel 'add'.*complex64"):
        add[(1,)](torch.zeros(4, dtype=torch.complex64), y, out, 64, BLOCK=64)


def test_reinterpreted_tensors(recorder: Any) -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(64, dtype=torch.int16)
    scale[(1,)](triton.reinterpret(x, tl.float16), 2.0, True, BLOCK=64)
    assert recorder.launches[0].arguments[0].shape == (64,)
    assert "ld.global.b16" in recorder.programs[0].text or "ld.global.b32" in recorder.programs[0].text


@pytest.mark.parametrize("name", ["float8_e5m2", "bfloat16"])
def test_narrow_floats(recorder: Any, name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.zeros(64, getattr(ml_dtypes, name))
    copy[(1,)](x, x, BLOCK=64)
    assert recorder.launches[0].arguments[0].dtype.numpy == x.dtype


def test_scalars(recorder: Any) -> None:
    (x,) = arrays(1)
    scale[(1,)](x, np.float32(1.5), np.bool_(True), BLOCK=64)
    assert numbers(recorder.launches[0].arguments) == [1.5, 1, 0, 0]
    scale[(1,)](x, 2**40, False, BLOCK=64)
    assert [argument.dtype.name for argument in recorder.launches[1].arguments[1:3]] == ["s64", "u8"]
    scale[(1,)](x, 1, False, BLOCK=64)
    assert numbers(recorder.launches[2].arguments) == [0, 0, 0], "1 is compiled in"


def test_annotated_scalars(recorder: Any) -> None:
    (x,) = arrays(1)
    half_scale[(1,)](x, 1.5, 2, 3, BLOCK=64)
    _, half, other, count, *_ = recorder.launches[0].arguments
    assert half == Struct(np.float16(1.5).tobytes())
    assert other == Struct(b"\x00\x40")
    assert (count.dtype.name, count.value) == ("s64", 3)
    with pytest.raises(ArgumentError, match=r"'count'.*outside"):
        half_scale[(1,)](x, 1.5, 2, 2**63, BLOCK=64)


def test_floats_beyond_their_type(recorder: Any) -> None:
    """As Triton's launcher passes them, which casts as C does."""
    (x,) = arrays(1, 16)
    scale[(1,)](x, 1e300, 1, BLOCK=16)
    half_scale[(1,)](x, -65504.0, 1e300, 7, BLOCK=16)
    first, second = (launch.arguments for launch in recorder.launches)
    assert first[1] == Scalar(DTYPES["f32"], float("inf"))
    assert second[1:3] == (Struct(b"\xff\xfb"), Struct(b"\x80\x7f"))
    half_scale[(1,)](x, 0.1, 1.00390624, 7, BLOCK=16)
    assert recorder.launches[2].arguments[2] == Struct(b"\x80\x3f"), "cut, not rounded"
    with pytest.raises(ArgumentError, match=r"'factor'.*float too large"):
        half_scale[(1,)](x, 1e300, 2, 7, BLOCK=16)


def test_tuples(recorder: Any) -> None:
    x, out = arrays(2)
    add_pair[(1,)](Pair(x, 7), out, BLOCK=64)
    first, number, second, *_ = recorder.launches[0].arguments
    assert (first.shape, number.value, second.shape) == ((4096,), 7, (4096,))
    with pytest.raises(ArgumentError, match=r"argument 'pair' of kernel 'add_pair'"):
        add_pair[(1,)](([1], 7), out, BLOCK=64)


def test_none_is_compiled_in(recorder: Any) -> None:
    (x,) = arrays(1)
    scale[(1,)](x, 2.0, None, BLOCK=64)
    assert numbers(recorder.launches[0].arguments) == [2.0, 0, 0]


def test_descriptor_becomes_a_pointer(recorder: Any) -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: PLC0415  only this test needs it

    x, out = np.zeros((64, 32), np.float32), np.zeros((16, 16), np.float32)
    descriptor = TensorDescriptor.from_tensor(tensor(x), [16, 16])
    copy_tile[(1,)](descriptor, out, 16, 16)
    arguments = recorder.launches[0].arguments
    assert arguments[0].shape == (64, 32)
    values = numbers(arguments)
    assert values[:4] == [64, 32, 32, 1]
    assert values[-6:] == [64, 32, 32, 1, 0, 0]
    declared = recorder.programs[0].text.partition(".entry")[2].partition(")")[0].count(".param")
    assert len(arguments) == declared


def test_scratch_comes_from_the_users_allocator(recorder: Any) -> None:
    x, out = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    with activate(target="sm_90"):
        with pytest.raises(RuntimeError, match="set_allocator"):
            copy_device_tile[(2,)](x, out, 16, 16)
        triton.set_allocator(lambda size, alignment, stream: tensor(np.zeros(size, np.int8)))
        copy_device_tile[(2,)](x, out, 16, 16)
    scratch, profile_scratch = recorder.launches[0].arguments[-2:]
    assert scratch.nbytes % 2 == 0
    assert scratch.nbytes >= 256
    assert profile_scratch == Scalar(profile_scratch.dtype, 0)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1.0, 2.0], "list"),
        ("text", "str"),
        (object(), "object"),
        (1j, "complex"),
        (np.array([None]), "Python objects"),
        (np.zeros(4, ">f4"), "big-endian"),
        (np.zeros(4, np.complex64), "complex64"),
        (np.zeros(4, [("a", "f4")]), "element type"),
        (np.array(["text"]), "<U4"),
        (2**70, "no integer of Triton holds 1180591620717411303424"),
        (-(2**63) - 1, "no integer of Triton holds"),
    ],
)
def test_wrong_arguments_are_named(recorder: Any, value: object, reason: str) -> None:
    x, out = arrays(2)
    with pytest.raises(ArgumentError) as caught:
        add[(1,)](x, value, out, 64, BLOCK=64)
    assert "argument 'y' of kernel 'add'" in str(caught.value)
    assert reason in str(caught.value)
    assert isinstance(caught.value, OverflowError) == isinstance(value, int)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
    assert recorder.launches == []


@pytest.mark.parametrize("grid", [(1.5,), ("2",), (-1,)])
def test_wrong_grids_are_shown(recorder: Any, grid: tuple[Any, ...]) -> None:
    x, y, out = arrays(3)
    with pytest.raises(LaunchError, match="grid"):
        add[grid](x, y, out, 64, BLOCK=64)


def test_compiled_kernel_is_launched_directly(recorder: Any) -> None:
    x, y, out = arrays(3)
    compiled = add.warmup(x, y, out, 3000, BLOCK=1024, grid=(1,))
    assert recorder.launches == []
    compiled[(3, 1, 1)](x, y, out, 3000, 1024)
    assert recorder.launches[0].grid == (3, 1, 1)
    with pytest.raises(ArgumentError, match="5 parameters"):
        compiled[(3, 1, 1)](x, y, out, 3000)


def test_registers_come_from_the_assembler(recorder: Any) -> None:
    x, y, out = arrays(3)
    compiled = add[(3,)](x, y, out, 3000, BLOCK=1024)
    assert 8 <= compiled.n_regs <= 255
    assert compiled.n_spills == 0
    assert "LDG.E" in compiled.asm["sass"]


def test_an_open_profile_decides(recorder: Any) -> None:
    x, y, out = arrays(3)
    with profile(chip="h100", target="sm_89") as seen:
        add[(3,)](x, y, out, 3000, BLOCK=1024)
    add[(3,)](x, y, out, 3000, BLOCK=1024)
    assert [program.target for program in recorder.programs] == ["sm_89", "sm_80"]
    assert [(launch.target, launch.chip.name) for launch in seen.launches] == [("sm_89", "h100")]


def test_compile_errors_are_tritons_own(recorder: Any) -> None:
    compilation = pytest.importorskip("triton.compiler")
    x, y, out = arrays(3)
    with pytest.raises(compilation.CompilationError, match="offsets = "):
        add[(1,)](x, y, out, 64, BLOCK=100)


def test_launch_hooks(recorder: Any) -> None:
    x, y, out = arrays(3)
    seen: list[str] = []

    def enter(metadata: Any) -> None:
        seen.append(metadata.get()["name"])

    triton.knobs.runtime.launch_enter_hook.add(enter)
    try:
        add[(1,)](x, y, out, 64, BLOCK=64)
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(enter)
    assert seen == ["add"]
