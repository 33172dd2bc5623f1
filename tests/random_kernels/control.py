"""Statements around statements: branches, switches, loops, jumps out of them, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from accesses import Accesses
from arithmetic import arithmetic
from exchanges import among_lanes, among_threads, exchange, hint
from grammar import Body, Statement, plain
from operands import Source
from places import Shape

MOST_LOOPS = 3


@dataclass(frozen=True, slots=True)
class Context:
    """What may stand here."""

    depth: int
    """How many levels of bodies may follow."""
    loops: int = 0
    """How many loops this is in."""
    exits: tuple[str, str] | None = None
    """The labels of the innermost loop: behind its body, and behind it."""
    together: bool = False
    """All threads of the block that have not ended get here, as often as each other."""
    leave: str = ""
    """How lanes may end early: `exit`, a jump to a label, or not at all."""
    whole: bool = False
    """All threads of all warps are there: none ends early, and the block's size is that of whole warps."""

    def inside(self, *, together: bool = False, exits: tuple[str, str] | None = None) -> Context:
        """The context of a body."""
        loops = self.loops + (exits is not None)
        together = together and self.together
        return replace(self, depth=self.depth - 1, loops=loops, together=together, exits=exits or self.exits)


Call = Callable[[Source], Statement]


@dataclass(slots=True)
class Author:
    """Writes bodies at random."""

    source: Source
    shape: Shape
    accesses: Accesses
    calls: Sequence[Call] = ()
    """Statements that call the functions that are there."""

    def body(self, context: Context, most: int = 5) -> Body:
        """Some statements."""
        return tuple(self.statement(context) for _ in range(self.source.random.randrange(1, most + 1)))

    def statement(self, context: Context) -> Statement:
        """Any statement that may stand there."""
        kind = self.source.random.random()
        if context.depth > 0 and kind < 0.27:
            return self._compound(context)
        if kind < 0.30 and (context.exits or context.leave):
            return self._jump(context)
        if kind < 0.34 and self.calls:
            return self.source.random.choice(self.calls)(self.source)
        if kind < 0.38 and context.together:
            write = self.source.random.choice((among_threads, exchange))
            return write(self.source, self.shape, whole=context.whole)
        return self._simple()

    def _simple(self) -> Statement:
        kind = self.source.random.random()
        if kind < 0.62:
            return arithmetic(self.source)
        if kind < 0.87:
            return self.accesses.any()
        return among_lanes(self.source) if kind < 0.96 else hint(self.source)

    def _compound(self, context: Context) -> Statement:
        kind = self.source.random.random()
        if kind < 0.5:
            return self._branch(context)
        if kind < 0.7:
            return self._switch(context)
        return self._loop(context) if context.loops < MOST_LOOPS else self._branch(context)

    # Conditions -------------------------------------------------------------------------------------------------

    def condition(self, *, uniform: bool = False) -> tuple[tuple[str, ...], str]:
        """Lines that set a predicate, and the guard to use; `uniform`: all threads of the block agree."""
        source = self.source
        sign = source.random.choice(("", "!"))
        if uniform:
            what = source.random.choice(("%ctaid.x", "%nctaid.x", "%ntid.x"))
            return (f"mov.u32 %x0, {what};", f"setp.eq.u32 %q0, %x0, {source.random.randrange(3)};"), f"@{sign}%q0"
        kind = source.random.randrange(4)
        if kind == 0:
            return (), f"@{sign}{source.of_class('p')}"
        if kind == 1:
            return ("mov.u32 %x0, %laneid;", f"setp.lt.u32 %q0, %x0, {source.random.randrange(33)};"), f"@{sign}%q0"
        what = source.random.choice((source.word(), source.word(), "%t0", "%t1"))
        mask = source.random.choice((1, 3, 4, 7, 16, 0x80))
        return (f"and.b32 %x0, {what}, {mask};", "setp.eq.u32 %q0, %x0, 0;"), f"@{sign}%q0"

    def _branch(self, context: Context) -> Statement:
        source = self.source
        uniform = context.together and source.chance(0.5)
        lines, guard = self.condition(uniform=uniform)
        other, end = source.label(), source.label()
        inner = context.inside(together=uniform)
        if source.chance(0.4):
            return Statement((*lines, f"{guard} bra {end};", self.body(inner), f"{end}:"))
        uni = ".uni" if source.chance(0.2) else ""
        first, second = self.body(inner), self.body(inner)
        return Statement((*lines, f"{guard} bra {other};", first, f"bra{uni} {end};", f"{other}:", second, f"{end}:"))

    def _switch(self, context: Context) -> Statement:
        source = self.source
        labels = [source.label() for _ in range(source.random.randrange(2, 5))]
        table, end = source.label("T"), source.label()
        listed = [source.random.choice([*labels, end]) for _ in range(source.random.choice((4, 8)))]
        index = source.random.choice((source.word(), source.word(), "%t0"))
        parts: list[str | Body] = [
            f"and.b32 %x0, {index}, {len(listed) - 1};", f"{table}: .branchtargets {', '.join(listed)};",
            f"brx.idx %x0, {table};",
        ]  # fmt: skip
        for label in labels:
            parts += [f"{label}:", self.body(context.inside(), 3)]
            if source.chance(0.75):
                parts.append(f"bra {end};")
        return Statement((*parts, f"{end}:"))

    def _loop(self, context: Context) -> Statement:
        source = self.source
        head, behind, end = source.label(), source.label(), source.label()
        counter, limit = f"%c{2 * context.loops}", f"%c{2 * context.loops + 1}"
        uniform = source.chance(0.4)
        most = 3 if context.loops else 7
        trips = f"mov.u32 {limit}, {source.random.randrange(1, most + 1)};"
        if not uniform:
            trips = f"and.b32 {limit}, {source.random.choice((source.word(), '%t0'))}, {most};"
        can_leave = not (uniform and context.together)
        inner = context.inside(together=uniform, exits=(behind, end))
        body = self.body(inner if can_leave else replace(inner, exits=None))
        test = f"setp.lt.u32 %q0, {counter}, {limit};"
        step = (f"{behind}:", f"add.u32 {counter}, {counter}, 1;")
        if source.chance(0.5):
            begin = (f"setp.ge.u32 %q0, {counter}, {limit};", f"@%q0 bra {end};")
            return Statement(
                (trips, f"mov.u32 {counter}, 0;", f"{head}:", *begin, body, *step, f"bra {head};", f"{end}:")
            )
        return Statement(
            (trips, f"mov.u32 {counter}, 0;", f"{head}:", body, *step, test, f"@%q0 bra {head};", f"{end}:")
        )

    def _jump(self, context: Context) -> Statement:
        lines, guard = self.condition()
        ways = [f"bra {label}" for label in context.exits or ()]
        ways += [context.leave] if context.leave else []
        return plain(*lines, f"{guard} {self.source.random.choice(ways)};")
