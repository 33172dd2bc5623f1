"""The backend that Triton's discovery insists on. It claims no target: PTX comes from Triton's own CUDA backend."""

from __future__ import annotations

from types import ModuleType

import triton.backends.compiler as triton_compiler


class TriptychBackend(triton_compiler.BaseBackend):
    """Claims no target, so none of its other methods is ever called."""

    @staticmethod
    def supports_target(target: object) -> bool:
        """Never: `GPUTarget("cuda", …)` stays with Triton's CUDA backend."""
        return False

    def hash(self) -> str:
        """Not called: no target is ours."""
        return "triptych"

    def parse_options(self, options: dict[str, object]) -> object:
        """Not called: no target is ours."""
        return options

    def add_stages(self, stages: dict[str, object], options: object, language: object = None) -> None:
        """Not called: no target is ours."""

    def load_dialects(self, context: object) -> None:
        """Not called: no target is ours."""

    def get_module_map(self) -> dict[str, ModuleType]:
        """Not called: no target is ours."""
        return {}
