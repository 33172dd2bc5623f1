"""The third witness of each instruction: what it must give, worked out without the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import witness_approximate as approximate
import witness_compare as compare
import witness_convert as convert
import witness_float as floating
import witness_integer as integer
from expected import Expected
from opcodes import Opcode

Witness = Callable[..., tuple[Expected, ...]]

_INTEGER: Mapping[str, Witness] = {
    "add": integer.add, "sub": integer.add, "mul": integer.multiply, "mad": integer.multiply, "div": integer.divide,
    "rem": integer.divide, "abs": integer.sign, "neg": integer.sign, "min": integer.extreme, "max": integer.extreme,
    "popc": integer.popc, "clz": integer.clz, "bfind": integer.bfind, "brev": integer.brev, "bfe": integer.bfe,
    "bfi": integer.bfi, "sad": integer.sad, "and": integer.logic, "or": integer.logic, "xor": integer.logic,
    "not": integer.invert, "cnot": integer.invert, "lop3": integer.lop3, "shl": integer.shift, "shr": integer.shift,
    "shf": integer.shf, "prmt": integer.prmt, "cvta": integer.cvta, "mapa": integer.mapa,
    "getctarank": integer.getctarank, "mbarrier": integer.pending_count, "mul24": integer.multiply_24,
    "mad24": integer.multiply_24, "fns": integer.fns, "szext": integer.szext, "bmsk": integer.bmsk,
    **{f"v{name}{parts}": integer.video for name in ("add", "sub", "avrg", "absdiff", "min", "max") for parts in "24"},
    **dict.fromkeys(("vset2", "vset4"), integer.video_set),
    **dict.fromkeys(("dp4a", "dp2a"), integer.dot_product), **dict.fromkeys(("addc", "subc", "madc"), integer.extended),
}  # fmt: skip
_FLOAT: Mapping[str, Witness] = {
    **dict.fromkeys(("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt"), floating.arithmetic),
    "abs": floating.sign, "neg": floating.sign, "copysign": floating.copysign,
    "min": floating.extreme, "max": floating.extreme, "testp": floating.testp,
}  # fmt: skip
_APPROXIMATE: Mapping[str, Witness] = {
    **dict.fromkeys(("ex2", "lg2", "sin", "cos", "tanh"), approximate.function),
    **dict.fromkeys(("rcp", "sqrt", "rsqrt"), approximate.reciprocal),
    "div": approximate.divide,
}
_ANY_TYPE: Mapping[str, Witness] = {
    "setp": compare.setp, "set": compare.set_, "selp": integer.selp, "slct": integer.slct, "mov": integer.mov,
    "cvt": convert.cvt, "isspacep": integer.isspacep, "createpolicy": integer.policy,
}  # fmt: skip


def find_witness(op: Opcode) -> Witness | None:
    """The witness of an opcode, None where nobody wrote one."""
    if op.mnemonic in _ANY_TYPE:
        return _ANY_TYPE[op.mnemonic]
    if op.has("approx") or op.has("full"):
        if op.type == "f64":
            return approximate.upper_half if op.has("ftz") else approximate.rsqrt_double
        narrow = {"ex2": approximate.ex2_narrow, "tanh": approximate.tanh_narrow}
        return (narrow if "16" in op.type else _APPROXIMATE).get(op.mnemonic)
    if op.has("cc"):
        return integer.extended
    if op.type in ("u16x2", "s16x2", "u8x4", "s8x4"):
        return integer.parts
    if len(op.types) == 2 and op.types[0] == "f32" and op.mnemonic in ("add", "sub", "fma"):
        return floating.mixed
    return (_FLOAT if "f" in op.type else _INTEGER).get(op.mnemonic)
