"""`printf` in kernels: C's format, the order of blocks, bounds, and where the text goes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest

import triptych as tt
from triptych.core.output import redirecting
from triptych.gpu.isa.printf import format_printf

SOURCE = r"""
extern "C" __global__ void formats(const float *f, const long long *l) {
    int i = threadIdx.x;
    if (i >= 3) return;
    printf("%d|%5d|%-5d|%05d|%+d|%x|%#o|%c|%s|%%\n", i, i * 10, i, -i, i, i + 254, i + 8, 'a' + i, "text");
    printf("%f|%.2f|%10.3e|%g|%a|%lld|%llu|%p\n", f[i], f[i], f[i], f[i], f[i], l[i], l[i], (void *)0x1234);
    printf("%*d|%-*d|%.*f\n", 6, i, 4, i, 1, f[i]);
}
extern "C" __global__ void results(int *y, const char *none) {
    y[0] = printf("none\n");
    y[1] = printf("%d %s %f\n", 1, "two", 3.0);
    y[2] = printf(none);
    char own[6] = {'l', 'o', 'c', 'a', 'l', 0};
    __shared__ char shared[7];
    for (int k = 0; k < 6; ++k) shared[k] = "shared"[k];
    shared[6] = 0;
    y[3] = printf("%s %s %s\n", own, shared, none);
}
extern "C" __global__ void order(int many) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int k = 0; k < many; ++k) printf("block %d warp %d lane %d: %d\n", blockIdx.x, warp, lane, k);
}
extern "C" __global__ void much(int *y, int bytes) {
    for (int k = 0; k < bytes / 16; ++k) y[blockIdx.x] = printf("%07d %06d\n", blockIdx.x, k);
}
extern "C" __global__ void falls(float *p, int block, long long i) {
    printf("%d says hello\n", blockIdx.x);
    if (blockIdx.x == block) p[i] = 1;
}
extern "C" __global__ void wild(const char *text) { printf("%s", text + (1ll << 45)); }
"""


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


def test_formats_are_c_s(module: tt.cuda.CudaModule, capsys: pytest.CaptureFixture[str]) -> None:
    f, large = np.array([0, 1.5, -2.25e10], np.float32), np.array([-1, 7, 1 << 40], np.int64)
    module["formats"][1, 64](f, large)
    lines = capsys.readouterr().out.splitlines()
    hexadecimal = ("0x0p+0", "0x1.8p+0", "-0x1.4f46bp+34")
    # One instruction after the other, each for all lanes.
    for i in range(3):
        v, n = float(f[i]), int(large[i])
        assert lines[i] == f"{i}|{i * 10:5}|{i:<5}|{-i:05}|{i:+}|{i + 254:x}|0{i + 8:o}|{'abc'[i]}|text|%"
        numbers = f"{v:f}|{v:.2f}|{v:10.3e}|{v:g}|{hexadecimal[i]}|{n}|{n % 2**64}|0x1234"
        assert lines[3 + i] == numbers
        assert lines[6 + i] == f"{i:6}|{i:<4}|{v:.1f}"
    assert len(lines) == 9


@pytest.mark.parametrize(
    ("template", "arguments", "text", "taken"),
    [
        ("%hhd %hd %hu %hhu", [300, 70000, -1, -1], "44 4464 65535 255", 4),
        ("%ld %lu %jd %zd %td", ["-5", "-5", "6", "7", "8"], f"-5 {2**64 - 5} 6 7 8", 5),
        ("%i %u %X %#x %#X", [-1, -1, 48879, 48879, 48879], "-1 4294967295 BEEF 0xbeef 0XBEEF", 5),
        ("% d|%+i|%.5d|%8.3d|%-8.3d|", [4, 4, 42, -42, 42], " 4|+4|00042|    -042|042     |", 5),
        ("%e %E %G %F %A", [1e-9, 1e9, 1e-9, 2.5, 0.5], "1.000000e-09 1.000000E+09 1E-09 2.500000 0X1P-1", 5),
        ("%f %F %5.1f|%-9f|%09f", [np.inf, -np.inf, np.nan, np.inf, -np.inf], "inf -INF   nan|inf      |     -inf", 5),
        ("%#.0f %.0f %.0f %.3g %#g", [1.0, 0.5, 1.5, 1234.5, 2.0], "1. 0 2 1.23e+03 2.00000", 5),
        ("%*d|%-*d|%*d|%.*d|%.*d", [5, 3, 4, 3, -4, 3, 3, 7, -1, 7], "    3|3   |3   |007|7", 10),
        ("%.3s|%6.2s|%-4s|%s", [b"abcdef", b"xyz", b"q", b""], "abc|    xy|q   |", 4),
        ("%c%c|%3c|%-3c|", [72, 105, 33, 63], "Hi|  !|?  |", 4),
        ("%p %p %s", ["4660", "0", "0"], "0x1234 (nil) (null)", 3),
        ("100%% %d%", [5], "100% 5%", 1),
        ("%y %d %", [9], "%y 9 %", 1),
        ("plain", [], "plain", 0),
        ("%d %f %d %lld", [1, 2.0, 3, "4"], "1 2.000000 3 4", 4),
    ],
)
def test_each_conversion(template: str, arguments: Sequence[int | float | str | bytes], text: str, taken: int) -> None:
    """Texts are 64-bit integers; they and doubles lie at multiples of 8 bytes, as the compilers put them."""
    memory, strings = bytearray(), {4096 * (1 + k): a for k, a in enumerate(arguments) if isinstance(a, bytes)}
    addresses = {a: address for address, a in strings.items()}
    for argument in arguments:
        match argument:
            case float():
                data = struct.pack("<d", argument)
            case int():
                data = struct.pack("<I", argument % 2**32)
            case _:
                wide = addresses[argument] if isinstance(argument, bytes) else int(argument)
                data = struct.pack("<Q", wide % 2**64)
        memory += bytes(-len(memory) % len(data)) + data
    made = format_printf(template.encode(), 0, lambda at, size: bytes(memory[at : at + size]), strings.__getitem__)
    assert made == (text.encode(), taken)


def test_what_it_returns(module: tt.cuda.CudaModule, capsys: pytest.CaptureFixture[str]) -> None:
    y = np.zeros(4, np.int32)
    module["results"][1, 1](y, None)
    assert y.tolist() == [0, 3, -1, 3]
    assert capsys.readouterr().out == "none\n1 two 3.000000\nlocal shared (null)\n"


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_blocks_print_in_order(module: tt.cuda.CudaModule, capsys: pytest.CaptureFixture[str], workers: int) -> None:
    with tt.scope(workers=workers):
        module["order"][7, 40](2)
    lanes = [
        (b, w, lane, k) for b in range(7) for w in range(2) for k in range(2) for lane in range(32 if w == 0 else 8)
    ]
    expected = [f"block {b} warp {w} lane {lane}: {k}" for b, w, lane, k in lanes]
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("workers", [1, 3])
def test_what_is_cut_is_told(module: tt.cuda.CudaModule, capsys: pytest.CaptureFixture[str], workers: int) -> None:
    y = np.zeros(9, np.int32)
    with tt.scope(workers=workers, printf_bytes=1000):
        module["much"][9, 1](y, 400)
    lines = capsys.readouterr().out.splitlines()
    # Each block prints 25 lines of 15 bytes; 66 fit into 1000.
    assert lines[:-1] == [f"{n // 25:07} {n % 25:06}" for n in range(66)]
    assert lines[-1] == f"[{(9 * 25 - 66) * 15} more bytes were printed; TRIPTYCH_PRINTF_BYTES=1000 is the limit]"
    assert (y == 2).all()
    with tt.scope(workers=workers, printf_bytes=100):
        module["much"][9, 1](y, 400)
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[-1].split()[0]) == (7, f"[{(9 * 25 - 6) * 15}")
    assert (y == -2).all()  # a block that fills the buffer alone learns of it


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_printed_before_a_fault_is_shown(
    module: tt.cuda.CudaModule, capsys: pytest.CaptureFixture[str], workers: int
) -> None:
    with tt.scope(workers=workers), pytest.raises(tt.MemoryFault):
        module["falls"][6, 1](np.zeros(4, np.float32), 3, 1 << 20)
    assert capsys.readouterr().out == "".join(f"{b} says hello\n" for b in range(4))


def test_a_string_that_is_nowhere(module: tt.cuda.CudaModule) -> None:
    with pytest.raises(tt.MemoryFault, match=r"kernel wild: a call reads 1 bytes at address 0x2\w+, which is out of"):
        module["wild"][1, 1](np.zeros(4, np.int8))


def test_it_can_be_redirected(module: tt.cuda.CudaModule, capsys: pytest.CaptureFixture[str]) -> None:
    given: list[str] = []
    with redirecting(given.append):
        module["order"][1, 1](1)
        module["order"][1, 1](0)
    module["order"][1, 2](1)
    assert given == ["block 0 warp 0 lane 0: 0\n"]
    assert capsys.readouterr().out == "block 0 warp 0 lane 0: 0\nblock 0 warp 0 lane 1: 0\n"
