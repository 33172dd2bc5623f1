"""Virtual registers, as a kernel sees them while it is traced, and what may stand for an index known only later."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NoReturn

from triptych.languages.calling import frames
from triptych.languages.nki.tracing.indexing import refuse
from triptych.languages.nki.tracing.while_loops import look
from triptych.neuron.isa.trace import Region

if TYPE_CHECKING:
    from triptych.languages.nki.tracing.tracer import Tracer


class VirtualRegister:
    """A register of 32 bits: `nisa.register_alloc`; an index, a loop's bound or condition. It has no value yet."""

    __slots__ = ("tensor", "tracer")

    def __init__(self, tracer: Tracer, tensor: int) -> None:
        """The register that `tracer` declared as `tensor`."""
        self.tracer = tracer
        self.tensor = tensor

    @property
    def region(self) -> Region:
        """Where its value lies."""
        return Region(self.tensor, 0, ((1, 1), (1, 1)))

    def __repr__(self) -> str:
        """That it is a register."""
        return f"VirtualRegister({self.tensor})"

    def _no_number(self, *_: object) -> NoReturn:
        raise refuse(
            "the value of a register is not known while a kernel is traced: it is no number of Python, nor a condition",
            "loop with nl.fori_loop, nl.while_loop or `while register:`; index with nl.ds(register, size) or "
            ".ap(scalar_offset=register)",
        )

    def __bool__(self) -> bool:
        """Only for `while register:`, a loop on the device."""
        found = look(self, next(islice(frames(), 1, None)))
        if found is None:
            self._no_number()
        return found

    __int__ = __index__ = __float__ = _no_number
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = _no_number
    __lt__ = __le__ = __gt__ = __ge__ = _no_number
