"""triptych: run, check, count and place CUDA C++, Triton and NKI kernels on a roofline, with no accelerator.

Nothing heavy is imported until it is used: every public name is looked up on first access (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triptych import chips as chips
    from triptych import judge as judge
    from triptych import operators as operators
    from triptych.core.checks import Severity
    from triptych.core.counters import Counter, Counters, Provenance
    from triptych.core.errors import (
        ArgumentError,
        AssertionFailure,
        BarrierMisuse,
        BudgetExceeded,
        CaptureError,
        ChipError,
        CompileError,
        DeadlockError,
        DivergentWarp,
        IntegerOverflow,
        KernelFault,
        LaunchError,
        LaunchInterrupted,
        MemoryFault,
        NkiError,
        NkiLimitError,
        PlanError,
        PtxSyntaxError,
        SandboxError,
        SettingError,
        TensorMapMisuse,
        TriptychError,
        UnknownCounter,
        UnknownName,
        UnknownNkiName,
        UnsupportedFeature,
        UnsupportedInstruction,
        UsageError,
        ValueTouched,
        WarpgroupMisuse,
    )
    from triptych.core.launches import Finding, Line
    from triptych.core.settings import Settings, scope, settings
    from triptych.execution import plans as plans
    from triptych.execution.arrays import Array, empty, zeros
    from triptych.execution.launch_report import LaunchReport
    from triptych.execution.memory import data_ptr
    from triptych.execution.profile import Profile, profile
    from triptych.execution.tensor_maps import TensorMap, im2col_map, tensor_map
    from triptych.languages import cuda as cuda
    from triptych.languages import nki as nki
    from triptych.languages import ptx as ptx
    from triptych.languages import triton as triton
    from triptych.model import Roof, Roofline

__version__ = "0.1.0"

_MODULES = {
    "chips": "triptych.chips",
    "cuda": "triptych.languages.cuda",
    "judge": "triptych.judge",
    "nki": "triptych.languages.nki",
    "operators": "triptych.operators",
    "plans": "triptych.execution.plans",
    "ptx": "triptych.languages.ptx",
    "triton": "triptych.languages.triton",
}
_ORIGINS = {
    "triptych.core.checks": "Severity",
    "triptych.core.counters": "Counter Counters Provenance",
    "triptych.core.errors": (
        "ArgumentError AssertionFailure BarrierMisuse BudgetExceeded CaptureError ChipError CompileError DeadlockError"
        " DivergentWarp IntegerOverflow KernelFault LaunchError LaunchInterrupted MemoryFault NkiError NkiLimitError"
        " PlanError PtxSyntaxError SandboxError SettingError TensorMapMisuse TriptychError UnknownCounter UnknownName"
        " UnknownNkiName UnsupportedFeature UnsupportedInstruction UsageError ValueTouched WarpgroupMisuse"
    ),
    "triptych.core.launches": "Finding Line",
    "triptych.core.settings": "Settings scope settings",
    "triptych.execution.arrays": "Array empty zeros",
    "triptych.execution.memory": "data_ptr",
    "triptych.execution.launch_report": "LaunchReport",
    "triptych.execution.profile": "Profile profile",
    "triptych.execution.tensor_maps": "TensorMap im2col_map tensor_map",
    "triptych.model": "Roof Roofline",
}
_NAMES = {name: origin for origin, names in _ORIGINS.items() for name in names.split()}

__all__ = [
    "ArgumentError",
    "Array",
    "AssertionFailure",
    "BarrierMisuse",
    "BudgetExceeded",
    "CaptureError",
    "ChipError",
    "CompileError",
    "Counter",
    "Counters",
    "DeadlockError",
    "DivergentWarp",
    "Finding",
    "IntegerOverflow",
    "KernelFault",
    "LaunchError",
    "LaunchInterrupted",
    "LaunchReport",
    "Line",
    "MemoryFault",
    "NkiError",
    "NkiLimitError",
    "PlanError",
    "Profile",
    "Provenance",
    "PtxSyntaxError",
    "Roof",
    "Roofline",
    "SandboxError",
    "SettingError",
    "Settings",
    "Severity",
    "TensorMap",
    "TensorMapMisuse",
    "TriptychError",
    "UnknownCounter",
    "UnknownName",
    "UnknownNkiName",
    "UnsupportedFeature",
    "UnsupportedInstruction",
    "UsageError",
    "ValueTouched",
    "WarpgroupMisuse",
    "chips",
    "cuda",
    "data_ptr",
    "empty",
    "im2col_map",
    "judge",
    "nki",
    "operators",
    "plans",
    "profile",
    "ptx",
    "scope",
    "settings",
    "tensor_map",
    "triton",
    "zeros",
]


if not TYPE_CHECKING:  # a type checker reads the imports above, and finds misspelt names

    def __getattr__(name: str) -> object:
        """The public name, imported now; from then on it is an ordinary attribute."""
        if name in _MODULES:
            value: object = import_module(_MODULES[name])
        elif name in _NAMES:
            value = getattr(import_module(_NAMES[name]), name)
        else:
            raise AttributeError(f"module 'triptych' has no attribute '{name}'")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """The public names, whether imported yet or not."""
        return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
