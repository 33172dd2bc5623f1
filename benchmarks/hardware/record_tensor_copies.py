"""Records what the GPU of this machine makes of tensor copies: needs ptxas and the driver, nothing of triptych.

python benchmarks/hardware/record_tensor_copies.py OUTPUT.npz

Some copies may stop the device: they run in a process of their own, which is started anew behind one that did.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parents[1] / "tests" / "hardware")]

from device import Device, DriverError
from driver_maps import maps
from recording import origin, store
from tensor_cases import ELEMENT_BYTES, FILLS, INTERLEAVES, SWIZZLES, Case, Map, cases, kernel_text

BLOCK = 128
_DEVICE_TYPES = {"u16": 1, "u32": 2, "f32": 7}
"""The element types' numbers in `tensormap.replace`, of those that are tried."""


class _Descriptor(ctypes.Structure):
    _fields_ = (("words", ctypes.c_uint64 * 16),)


def _array(kind: Any, values: Sequence[int]) -> Any:  # noqa: ANN401
    return (kind * max(len(values), 1))(*values)


def _aligned() -> tuple[_Descriptor, ctypes.Array[Any]]:
    """A descriptor at a multiple of 64 bytes, and what keeps it alive."""
    buffer = ctypes.create_string_buffer(256)
    return _Descriptor.from_buffer(buffer, -ctypes.addressof(buffer) % 64), buffer


def encode(device: Device, one: Map, address: int) -> tuple[int, bytes]:
    """The driver's status, and its tensor map."""
    descriptor, _buffer = _aligned()
    dims = _array(ctypes.c_uint64, one.shape[::-1])
    strides = _array(ctypes.c_uint64, one.strides[::-1])
    steps = _array(ctypes.c_uint32, one.element_strides[::-1])
    begin = (ctypes.byref(descriptor), list(ELEMENT_BYTES).index(one.dtype), len(one.shape), ctypes.c_void_p(address),
             dims, strides)  # fmt: skip
    modes = (INTERLEAVES.index(one.interleave), SWIZZLES.index(one.swizzle), 0, FILLS.index(one.fill))
    if one.is_im2col:
        lower, upper = (_array(ctypes.c_int, corner[::-1]) for corner in (one.lower, one.upper))
        pixels, channels = one.box
        more = (lower, upper, ctypes.c_uint32(channels), ctypes.c_uint32(pixels), steps)
        status = device.status("cuTensorMapEncodeIm2col", *begin, *more, *modes)
    else:
        box = _array(ctypes.c_uint32, one.box[::-1])
        status = device.status("cuTensorMapEncodeTiled", *begin, box, steps, *modes)
    return status, bytes(descriptor)


def _run(device: Device, case: Case, cubins: dict[str, bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said of a copy, and its arrays."""
    tensor, image = case.tensor(), case.image()
    there, before = device.copy_there(tensor), device.copy_there(image)
    after = device.copy_there(np.zeros(len(image) + 8, np.uint8))
    status, descriptor = encode(device, case.map, there.value)
    if status:
        return {"refused": status}, {}
    text = kernel_text(case)
    cubins[text] = cubins.get(text) or device.assemble(text)
    places = [*case.coordinates, 0, 0, 0, 0, 0][:5]
    offsets = [*case.offsets, 0, 0, 0][:3]
    arguments = [
        _Descriptor.from_buffer_copy(descriptor), before, after,
        *(ctypes.c_uint32(value) for value in (len(image), case.base, case.expected_bytes)),
        *(ctypes.c_int32(value) for value in places), *(ctypes.c_uint16(value) for value in offsets), there,
    ]  # fmt: skip
    device.run(cubins[text], "copy", arguments, 1, BLOCK)
    shown = np.zeros(len(image) + 8, np.uint8)
    device.copy_back(after, shown)
    device.copy_back(there, tensor)
    device.free(there, before, after)
    complete = int(shown[len(image)])
    return {"complete": complete}, {"after": shown[: len(image)] if case.kind == "load" else tensor}


def _child(first: int, folder: Path) -> None:
    """Runs copies from one on; each leaves its result in a file."""
    device = Device()
    cubins: dict[str, bytes] = {}
    for number, case in enumerate(cases()):
        if number >= first:
            said, arrays = _run(device, case, cubins)
            np.savez(folder / f"{number}.npz", said=np.array(json.dumps(said)), **arrays)


def _run_all(folder: Path) -> list[str]:
    """Runs all copies; for each that stopped the device, what the driver said."""
    count, first, errors = len(cases()), 0, [""] * len(cases())
    while first < count:
        command = [sys.executable, __file__, "--child", str(first), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        while first < count and (folder / f"{first}.npz").exists():
            first += 1
        if first < count:
            errors[first] = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            first += 1
    return errors


_REPLACE = """.version {version}
.target sm_90a
.address_size 64

.visible .entry replace(.param .u64 out, .param .u64 address) {{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    .shared .align 128 .b8 map[128];

    ld.param.u64 %d1, [out];
    cvta.to.global.u64 %d1, %d1;
    ld.param.u64 %d2, [address];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, map;
    add.u32 %r2, %r2, %r3;
    mov.u32 %r0, 0;
    st.shared.u32 [%r2], %r0;
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra copy;
{fields}
copy:
    bar.warp.sync 0xffffffff;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [map], 128;
    ret;
}}
""".replace("    .reg .b32", "    .reg .pred %p<2>;\n    .reg .b32")


def _replaced(device: Device, version: str, one: Map, address: int) -> tuple[str, str]:
    """The map that the device makes of zeros, field by field, and the driver's, in hexadecimal."""
    fields = [("global_address", "b64", "", "%d2"), ("rank", "b32", "", str(len(one.shape) - 1))]
    for axis, extent in enumerate(one.shape[::-1]):
        fields.append(("global_dim", "b32", f" {axis},", str(extent)))
        fields.append(("box_dim", "b32", f" {axis},", str(one.box[::-1][axis])))
        fields.append(("element_stride", "b32", f" {axis},", str(one.element_strides[::-1][axis])))
    fields += [("global_stride", "b64", f" {axis},", str(step)) for axis, step in enumerate(one.strides[::-1])]
    fields += [
        ("elemtype", "b32", "", str(_DEVICE_TYPES[one.dtype])),
        ("interleave_layout", "b32", "", str(INTERLEAVES.index(one.interleave))),
        ("swizzle_mode", "b32", "", str(SWIZZLES.index(one.swizzle))),
        ("fill_mode", "b32", "", str(FILLS.index(one.fill))),
    ]
    lines = "\n".join(
        f"    tensormap.replace.tile.{name}.shared::cta.b1024.{kind} [map],{ordinal} {value};"
        for name, kind, ordinal, value in fields
    )
    cubin = device.assemble(_REPLACE.format(version=version, fields=lines))
    out = device.copy_there(np.zeros(128, np.uint8))
    device.run(cubin, "replace", [out, ctypes.c_uint64(address)], 1, 32)
    shown = np.zeros(128, np.uint8)
    device.copy_back(out, shown)
    return shown.tobytes().hex(), encode(device, one, address)[1].hex()


def _record_replacing(device: Device) -> list[Mapping[str, object]]:
    tried = (
        Map("u16", (64, 64), (128,), (8, 32), (1, 1)),
        Map("f32", (50, 77, 64), (0x12340, 0x560), (8, 16, 32), (2, 3, 1), swizzle="128B", fill="nan"),
    )
    found: list[Mapping[str, object]] = []
    for version, one in product(("8.3", "8.6"), tried):
        row = {"version": version, "map": str(one)}
        try:
            replaced, encoded = _replaced(device, version, one, 0x7F00_1234_0000)
            found.append(row | {"replaced": replaced, "encoded": encoded})
        except DriverError as error:
            found.append(row | {"failed": str(error)})
    return found


def main(output: Path) -> None:
    """Runs, asks the driver, writes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        errors = _run_all(folder)
        rows: list[dict[str, object]] = []
        arrays: dict[str, Any] = {}
        for number, (case, error) in enumerate(zip(cases(), errors, strict=True)):
            row = case.as_json()
            if error:
                rows.append(row | {"failed": error})
                continue
            found = np.load(folder / f"{number}.npz")
            rows.append(row | json.loads(str(found["said"])))
            if "after" in found:
                arrays[f"after{number}"] = found["after"]
    device = Device()
    record = {
        **origin(),
        "cases": rows,
        "maps": [[name, encode(device, one, address)[0]] for name, one, address in maps()],
        "replaced": _record_replacing(device),
    }
    store(output, arrays, record=record)
    print(f"{len(arrays)} copies recorded, {sum(map(bool, errors))} stopped the device")


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        _child(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main(Path(sys.argv[1]))
