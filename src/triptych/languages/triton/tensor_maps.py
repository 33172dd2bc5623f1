"""Host descriptors (`TensorDescriptor`) as tensor maps, where the target has them, as Triton's own driver makes them.

Its utilities' `fill_tma_descriptor_tiled` and `…_im2col` are asked by its launcher alone, in whose place ours stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triptych.core.errors import UnsupportedFeature
from triptych.core.plan import Struct
from triptych.execution.tensor_maps import TensorMap, encode_tensor_map
from triptych.gpu.tensor_map import ELEMENT_TYPES, SWIZZLES
from triptych.languages.triton.arrays import bind

TYPE = "nvTmaDesc"
"""How Triton calls the parameter that holds one."""


def tensor_map_argument(value: tuple[Any, Mapping[str, Any]]) -> Struct:
    """A descriptor with what the compiler says of it (`tensordesc_meta`, 3.6 to 3.9), as a launch holds it.

    Raises:
        ArgumentError: naming what of it no tensor map can hold.
        UnsupportedFeature: for elements of 4 bits.
    """
    descriptor, said = value
    if said["fp4_padded"]:
        raise UnsupportedFeature("descriptors of elements of 4 bits need sm_100 or higher, which is not supported")
    handle, size, number = bind(descriptor.base), int(said["elem_size"]), int(said["elem_type"])
    rounds = getattr(descriptor, "round_f32_to_tf32", False)  # from 3.7 on
    steps, corners = None, None
    if said.get("is_im2col", False):  # from 3.7 on
        corners = (descriptor.pixel_box_lower_corner, descriptor.pixel_box_upper_corner)
        steps = descriptor.element_strides
    found = encode_tensor_map(
        handle.data_ptr(), "tf32" if rounds else ELEMENT_TYPES[number].name, descriptor.shape,
        [int(step) * size for step in descriptor.strides], said["block_size"], steps,
        swizzle=SWIZZLES[int(said["swizzle"])], fill="nan" if descriptor.padding == "nan" else "zero", corners=corners,
    )  # fmt: skip
    return TensorMap(descriptor.base, handle, found).argument
