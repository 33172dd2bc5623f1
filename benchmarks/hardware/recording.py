"""What all recorders say of where a record was made, and how records are stored."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def printed_by(*command: str) -> str:
    """What a program prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def origin() -> dict[str, object]:
    """The device with its driver's version, the assembler (ptxas), and the day."""
    return {
        "device": printed_by("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").strip(),
        "assembler": printed_by("ptxas", "--version").strip().splitlines()[-1],
        "date": date.today().isoformat(),
    }


def store(place: Path, arrays: Mapping[str, NDArray[Any]], **texts: object) -> None:
    """Writes a compressed file of numpy's; `texts` become JSON, each an array of its own."""
    told = {name: np.array(json.dumps(text)) for name, text in texts.items()}
    # numpy's stub takes any of the names for its own `allow_pickle`, a boolean.
    np.savez_compressed(place, **told, **arrays)  # type: ignore[arg-type]
