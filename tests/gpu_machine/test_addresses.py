"""The machine's own memory lies where no array of a plan may lie."""

from __future__ import annotations

import pytest

from triptych.core.handles import AddressSpace
from triptych.gpu.hardware import (
    FIRST_CODE_ADDRESS,
    FIRST_HEAP_ADDRESS,
    FIRST_VARIABLE_ADDRESS,
    GRID_WORKSPACE,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    WINDOW_SIZE,
)

OWN = (FIRST_CODE_ADDRESS, FIRST_HEAP_ADDRESS, GRID_WORKSPACE, PARAM_WINDOW, SHARED_WINDOW, LOCAL_WINDOW)


@pytest.mark.parametrize("address", OWN, ids=hex)
def test_above_all_arrays(address: int) -> None:
    assert AddressSpace.FIRST_ADDRESS < AddressSpace.END_ADDRESS <= address


def test_variables_lie_below() -> None:
    assert FIRST_VARIABLE_ADDRESS + WINDOW_SIZE < AddressSpace.FIRST_ADDRESS
