"""Control flow and barriers (PTX manual, 9.7.12 and 9.7.13). The executors carry these out themselves."""

from __future__ import annotations

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Effect, Form, Pipe, row


def _control(syntax: str, section: str, summary: str, effect: Effect = Effect.CONTROL) -> None:
    def carried_out_by_the_executor(m: Machine[V], f: Form) -> None:
        raise AssertionError(f"{syntax} has no meaning over the primitives")

    carried_out_by_the_executor.__doc__ = summary
    row(syntax, section=section, pipe=Pipe.CONTROL, effect=effect)(carried_out_by_the_executor)


_control("bra{.uni} target", "9.7.12.3", "Goes to a label.")
_control("brx.idx{.uni} index:u32, targets", "9.7.12.4", "Goes to the label of a list that an index picks.")
_control("ret{.uni}", "9.7.12.6", "Ends the thread (in a kernel).")
_control("exit", "9.7.12.7", "Ends the thread.")
_control("trap", "9.7.19.4", "Stops the launch with an error.")
_control("bar.sync a:u32", "9.7.13.1", "Waits until all threads of the block arrive.", Effect.BARRIER)
_control("barrier.sync{.aligned} a:u32", "9.7.13.1", "Waits until all threads of the block arrive.", Effect.BARRIER)
_control("bar.warp.sync mask:u32", "9.7.13.2", "Waits until the lanes of the mask arrive.", Effect.BARRIER)
