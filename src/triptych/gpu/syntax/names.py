"""Names inside a function: scopes, shadowing, and one unique name for each thing."""

from __future__ import annotations

from triptych.gpu.syntax.ast import Operand, Register, Symbol
from triptych.gpu.syntax.tokens import Tokens

SPECIAL_REGISTERS = frozenset(
    [
        f"%{name}"
        for name in ("tid", "ntid", "laneid", "warpid", "nwarpid", "ctaid", "nctaid", "smid", "nsmid", "gridid")
    ]
    + [f"%lanemask_{relation}" for relation in ("eq", "le", "lt", "ge", "gt")]
    + ["%is_explicit_cluster", "%clusterid", "%nclusterid"]
    + [f"%cluster_{name}" for name in ("ctaid", "nctaid", "ctarank", "nctarank")]
    + ["%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi", "%current_graph_exec"]
    + [f"%reserved_smem_offset_{place}" for place in ("begin", "end", "cap", "0", "1")]
    + [f"%{kind}_smem_size" for kind in ("total", "aggr", "dynamic")]
    + [f"%envreg{number}" for number in range(32)]
    + [f"%pm{number}{width}" for number in range(8) for width in ("", "_64")]
)
"""The predefined registers of the PTX manual, section "Special Registers", without `.x .y .z .w`."""
VECTOR_REGISTERS = frozenset(
    ["%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"]
)
COMPONENTS = frozenset("xyzw")


def is_special(name: str) -> bool:
    """Whether a name is that of a special register, with its component (`%tid.x`) where it is a vector."""
    base, dot, component = name.partition(".")
    if base not in SPECIAL_REGISTERS:
        return False
    return component in COMPONENTS if dot else base not in VECTOR_REGISTERS


class Scopes:
    """The open brace scopes of one function; `names` gives what each visible name means."""

    def __init__(self, tokens: Tokens, module_names: frozenset[str]) -> None:
        """Start a function; locals that would hide one of `module_names` get another name."""
        self.tokens = tokens
        self.names: dict[str, Operand] = {}
        self._taken = set(module_names)
        self._shadowed: list[dict[str, Operand | None]] = [{}]

    @property
    def depth(self) -> int:
        """How many scopes are open inside the function's own."""
        return len(self._shadowed) - 1

    def open(self) -> None:
        """Enter a scope."""
        self._shadowed.append({})

    def close(self) -> None:
        """Leave a scope: what it hid is visible again."""
        for name, before in self._shadowed.pop().items():
            if before is None:
                del self.names[name]
            else:
                self.names[name] = before

    def declare_register(self, name: str) -> str:
        """Declare a register in the innermost scope; returns its unique name."""
        unique = self._reserve(name)
        self.names[name] = Register(unique)
        return unique

    def declare_symbol(self, name: str, *, keep: bool = False) -> str:
        """Declare a variable or a label in the innermost scope; returns its unique name (`keep`: the name itself)."""
        unique = self._reserve(name, keep=keep)
        self.names[name] = Symbol(unique)
        return unique

    def _reserve(self, name: str, *, keep: bool = False) -> str:
        shadowed = self._shadowed[-1]
        if name in shadowed:
            raise self.tokens.error(f"'{name}' is declared twice in one scope", max(self.tokens.at - 1, 0))
        shadowed[name] = self.names.get(name)
        unique, number = name, 0
        while unique in self._taken and not keep:
            number += 1
            unique = f"{name}${number}"
        self._taken.add(unique)
        return unique
