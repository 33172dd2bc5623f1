"""Damaged PTX: edits of tokens and lines of texts that run, each of which must run too or be refused by a clear error.

`python tests/random_kernels/mutate.py --mutants 2000`: mutants in a child process, which none may bring down.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu_table"))

import numpy as np
from child import Child, Crash
from emit import random_kernel, text_of
from numpy.typing import NDArray

import triptych as tt
from triptych.core.output import redirecting
from triptych.gpu import GpuModule, Parameter, load
from triptych.gpu.run.kernel import kernel_of

CORPUS = Path(__file__).parents[1] / "data" / "ptx"
_TOKEN = re.compile(r"[%.]?[A-Za-z_$][\w$.:]*|\d\w*|\S|\s+")
_NUMBER = re.compile(r"(?<![\w%.$])\d+")
_NUMBERS = (
    "0", "-1", "1", "3", "255", "65536", "2147483648", "4294967295", "9223372036854775807", "18446744073709551615",
    "18446744073709551616", "-9223372036854775809", "0x", "0f3F800000", "0d3FF0000000000000", "1.5", "99999999999999",
)  # fmt: skip
_TYPES = (
    "u8",
    "s16",
    "u32",
    "s32",
    "b32",
    "u64",
    "b64",
    "f16",
    "f32",
    "f64",
    "bf16",
    "pred",
    "b128",
    "f16x2",
    "v2",
    "v4",
)
Edit = Callable[[random.Random, str, Sequence[str]], str]


# Edits ------------------------------------------------------------------------------------------------------------


def _edit_tokens(source: random.Random, text: str, others: Sequence[str]) -> str:
    """A token left out, doubled, exchanged or replaced."""
    tokens = _TOKEN.findall(text)
    places = [i for i, token in enumerate(tokens) if not token.isspace()]
    place, other = source.choice(places), source.choice(places)
    match source.randrange(5):
        case 0:
            tokens[place] = ""
        case 1:
            tokens[place] += " " + tokens[place]
        case 2:
            tokens[place], tokens[other] = tokens[other], tokens[place]
        case 3:
            tokens[place] = tokens[other]
        case _:
            tokens[place] = source.choice(_TOKEN.findall(source.choice(others)))
    return "".join(tokens)


def _edit_number(source: random.Random, text: str, others: Sequence[str]) -> str:
    """A number replaced by one at which things go wrong."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    match = source.choice(found)
    return text[: match.start()] + source.choice(_NUMBERS) + text[match.end() :]


def _edit_opcode(source: random.Random, text: str, others: Sequence[str]) -> str:
    """A modifier left out, doubled or replaced by a type or another modifier."""
    found = list(re.finditer(r"\.[a-z]\w*", text))
    match, other = source.choice(found), source.choice(found)
    new = source.choice(("", match[0] * 2, other[0], f".{source.choice(_TYPES)}"))
    return text[: match.start()] + new + text[match.end() :]


def _edit_lines(source: random.Random, text: str, others: Sequence[str]) -> str:
    """A line left out, doubled, moved, or taken from another text."""
    lines = text.splitlines()
    place, other = source.randrange(len(lines)), source.randrange(len(lines))
    match source.randrange(5):
        case 0:
            del lines[place]
        case 1:
            lines.insert(other, lines[place])
        case 2:
            lines[place], lines[other] = lines[other], lines[place]
        case 3:
            lines.insert(place, source.choice(source.choice(others).splitlines()))
        case _:
            del lines[min(place, other) : min(place, other) + source.randrange(1, 9)]
    return "\n".join(lines)


def _edit_characters(source: random.Random, text: str, others: Sequence[str]) -> str:
    """A character left out, put in or changed."""
    place = source.randrange(len(text))
    character = source.choice("{}[]();,:.|!@%<>+-*/\"'\\\x00\n0xfé_ ")
    return text[:place] + source.choice(("", character)) + text[place + source.randrange(2) :]


_EDITS: tuple[Edit, ...] = (_edit_tokens, _edit_tokens, _edit_number, _edit_opcode, _edit_lines, _edit_characters)


def mutant(seed: int, texts: Sequence[str]) -> str:
    """One to three edits of one of the texts."""
    source = random.Random(seed)
    text = source.choice(texts)
    for _ in range(source.choice((1, 1, 2, 3))):
        text = source.choice(_EDITS)(source, text, texts)
    return text


# Outcomes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Given:
    """A text for the child."""

    text: str
    launches: bool
    """Whether kernels are compiled and launched, else only taken apart."""
    folder: str


def outcome_of(given: Given) -> str:
    """`runs`, the name of the error of triptych's that refused it, or ` ` and what else was raised, with its place."""
    try:
        changed = tt.scope(cache_folder=given.folder, workers=1, budget=1 << 10, heap_bytes=1 << 16)
        with changed, redirecting(list[str]().append):
            module = load(given.text)
            for name in list(module.entries)[:2]:
                kernel_of(given.text, name, warps_in_rows=True)
                if given.launches:
                    _launch(given.text, module, name)
    except tt.TriptychError as error:
        return type(error).__name__
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        own = [one for one in traceback.extract_tb(error.__traceback__) if "triptych" in one.filename]
        place = (own or [frame])[-1]
        return f" {type(error).__name__} in {Path(place.filename).name}:{place.name}: {str(error)[:120]}"
    return "runs"


def _launch(text: str, module: GpuModule, name: str) -> None:
    kernel = tt.ptx.compile(text)[name]
    kernel[1, module.entries[name].required_block or 32](*map(_argument, module.entries[name].parameters))


def _argument(parameter: Parameter) -> NDArray[np.uint8] | np.generic | bytes:
    """An array for what may be a pointer, 5 for a number, zeros for a structure."""
    if parameter.size == 8:
        return np.zeros(1 << 14, np.uint8)
    kinds = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "s32": np.int32, "f32": np.float32, "b32": np.uint32}
    kind = kinds.get(parameter.type)
    return kind(5) if kind is not None and np.dtype(kind).itemsize == parameter.size else bytes(parameter.size)


# The campaign -----------------------------------------------------------------------------------------------------


def texts_of_corpus(longest: int = 12_000) -> list[str]:
    """Compilers' PTX that is not too long, and some random kernels without their source lines."""
    texts = [path.read_text() for path in sorted(CORPUS.glob("*.ptx"))]
    for seed in (5, 11, 13, 21, 34):
        lines = text_of(random_kernel(seed)).splitlines()
        texts.append("\n".join(line for line in lines if not line.startswith(".loc")))
    return [text for text in texts if len(text) < longest]


def run_campaign(mutants: int, seed: int, seconds: float, folder: Path, every: int) -> Counter[str]:
    """Mutants of ascending seeds; of each new kind of what may not be, the first is kept in the folder."""
    texts, kinds, started = texts_of_corpus(), Counter[str](), time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    child = Child(outcome_of, most_calls=400, timeout_s=180)
    for number in range(seed, seed + mutants):
        if time.monotonic() - started > seconds:
            break
        text = mutant(number, texts)
        found = child.call(Given(text, number % every == 0, str(folder / "cache")))
        kind = f" crash: {found.reason}" if isinstance(found, Crash) else found
        kinds[kind] += 1
        if kind.startswith(" ") and kinds[kind] == 1:
            (folder / f"mutant{number}.ptx").write_text(text)
            print(f"mutant {number}:{kind}", flush=True)
    child.close()
    return kinds


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first mutant")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop")
    parser.add_argument("--launch-every", type=int, default=8, help="of so many mutants, one is compiled and launched")
    parser.add_argument(
        "--failures", type=Path, default=Path(tempfile.gettempdir(), "mutants"), help="folder of what fails"
    )
    given = parser.parse_args()
    kinds = run_campaign(given.mutants, given.seed, given.seconds, given.failures, given.launch_every)
    print(f"{sum(kinds.values())} mutants")
    for kind, count in kinds.most_common():
        print(f"  {count} × {kind}")
    return 1 if any(kind.startswith(" ") for kind in kinds) else 0


if __name__ == "__main__":
    sys.exit(main())
