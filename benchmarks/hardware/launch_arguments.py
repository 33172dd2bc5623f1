"""Arguments of triptych's launches as a GPU takes them: addresses in its own memory, and tensor maps of its driver."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from device import Device, DriverError
from record_tensor_copies import encode
from tensor_cases import FILLS, SWIZZLES, Map

from triptych.core.handles import Storage
from triptych.core.plan import Argument, Struct, bytes_of, handles_in
from triptych.gpu.tensor_map import ELEMENT_TYPES, FIELDS, TILES, number_in

_ALIGNMENT = 64
"""Of an argument's bytes: a tensor map's."""
Places = Mapping[Storage, ctypes.c_uint64]
"""Where storages lie in a GPU's memory."""


def map_of(data: bytes) -> Map:
    """What the driver is told of a tensor map of triptych's."""
    assert number_in(data, FIELDS["mark"]) == TILES

    def numbers(name: str, count: int) -> tuple[int, ...]:
        return tuple(number_in(data, FIELDS[name], axis) for axis in range(count))[::-1]

    axes = number_in(data, FIELDS["rank"]) + 1
    element, swizzle, fill = (number_in(data, FIELDS[name]) for name in ("elemtype", "swizzle_mode", "fill_mode"))
    return Map(
        ELEMENT_TYPES[element].name, numbers("global_dim", axes), numbers("global_stride", axes - 1),
        numbers("box_dim", axes), numbers("element_stride", axes), swizzle=SWIZZLES[swizzle], fill=FILLS[fill],
    )  # fmt: skip


def argument_of(device: Device, argument: Argument, places: Places) -> ctypes.Array[ctypes.c_char]:
    """An array of ctypes with what the device is to see of an argument.

    Raises:
        DriverError: where the driver takes no such tensor map.
    """
    data = bytes_of(argument)
    match argument:
        case Struct(_, ((offset, handle),)):
            assert offset == FIELDS["global_address"].offset, "a struct that is no tensor map"
            status, data = encode(device, map_of(data), places[handle.storage].value + handle.offset)
            if status:
                raise DriverError(f"cuTensorMapEncodeTiled: status {status}")
        case _:
            for handle in handles_in(argument):
                data = (places[handle.storage].value + handle.offset).to_bytes(8, "little")
    buffer = ctypes.create_string_buffer(len(data) + _ALIGNMENT)
    offset = -ctypes.addressof(buffer) % _ALIGNMENT
    place = (ctypes.c_char * len(data)).from_buffer(buffer, offset)
    place[:] = data
    return place
