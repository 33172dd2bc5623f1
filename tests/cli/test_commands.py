"""Help, version, chips, instructions and operators."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command import triptych
from rich.cells import cell_len

from triptych import chips
from triptych.gpu.isa import TABLE
from triptych.operators import OPERATORS
from triptych.report import schema


def validated(text: str) -> dict[str, Any]:
    """The document, which follows the schema that it names."""
    value: dict[str, Any] = json.loads(text)
    described = schema(value["schema"])
    assert described["$id"] == value["schema"]
    jsonschema.Draft202012Validator.check_schema(described)
    validator: Any = jsonschema.Draft202012Validator(described)
    validator.validate(value)
    return value


def test_all_instructions_follow_their_schema(tmp_path: Path) -> None:
    file = tmp_path / "instructions.json"
    assert triptych("instructions", "--json", str(file)).returncode == 0
    assert len(validated(file.read_text(encoding="utf-8"))["instructions"]) == len(TABLE)


def test_figures_of_neuron_chips_are_those_of_a_core() -> None:
    assert "AWS Trainium2, one of its 8 NeuronCores" in triptych("chips", "trn2").stdout
    assert "one of its 8 NeuronCores" in " ".join(triptych("chips", COLUMNS="200").stdout.split())
    assert "NeuronCores" not in triptych("chips", "h100").stdout


def test_help_names_every_command() -> None:
    done = triptych("--help")
    assert done.returncode == 0
    for command in ("run", "demo", "chips", "instructions", "operators", "memory-wall", "--version"):
        assert command in done.stdout


@pytest.mark.parametrize("command", ["run", "demo", "chips", "instructions", "operators", "memory-wall"])
def test_every_command_has_help(command: str) -> None:
    done = triptych(command, "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout


def test_help_loads_nothing_heavy() -> None:
    done = triptych("--help", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert not loaded & {"numpy", "triton", "torch", "llvmlite", "ml_dtypes"}


def test_version() -> None:
    done = triptych("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("triptych 0.")


@pytest.mark.parametrize("module", ["triptych", "triptych.cli.main"])
def test_the_package_is_the_command(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("triptych 0.")
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [("--nonsense",), ("frobnicate",), ("run",), ("chips", "--nonsense")])
def test_usage_errors(arguments: tuple[str, ...]) -> None:
    done = triptych(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr


def test_chips() -> None:
    done = triptych("chips", COLUMNS="80")
    assert done.returncode == 0
    for name in chips.names():
        assert f"{name} " in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_one_chip_with_its_sources() -> None:
    done = triptych("chips", "v100")
    assert done.returncode == 0
    assert "flops_per_s.tensor.f16" in done.stdout
    assert "9e+11 B/s" in done.stdout
    assert "Compilers no longer target compute capability 7.0" in done.stdout


def test_chips_as_json(tmp_path: Path) -> None:
    done = triptych("chips", "h100", "--json", "-")
    (chip,) = validated(done.stdout)["chips"]
    assert chip["values"]["dram_bytes_per_s"] == {
        "value": 3.35e12,
        "unit": "B/s",
        "source": chips.load("h100").facts["dram_bytes_per_s"].source,
    }
    file = tmp_path / "chips.json"
    done = triptych("chips", "--json", str(file))
    assert len(validated(file.read_text(encoding="utf-8"))["chips"]) == len(chips.names())
    assert "h100" in done.stdout


def test_an_unknown_chip_is_one_clear_message() -> None:
    done = triptych("chips", "h101")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[0] == "triptych: unknown chip 'h101'"
    assert "did you mean h100" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_chip_file_is_one_clear_message(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\ntitle = "Mine"\nfamily = "gpu"\n', encoding="utf-8")
    done = triptych("chips", str(file))
    assert done.returncode == 2
    assert "key 'compute_capability': is missing" in done.stderr
    assert str(file) in done.stderr
    assert "Traceback" not in done.stderr


def test_json_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = triptych("chips", "--json", str(tmp_path / "none" / "x.json"))
    assert done.returncode == 2
    assert "cannot write JSON" in done.stderr


def test_instructions() -> None:
    done = triptych("instructions", COLUMNS="200")
    assert done.returncode == 0
    assert f"{len(TABLE)} forms" in done.stdout
    assert "add" in done.stdout


def test_instructions_of_one_mnemonic_as_json() -> None:
    done = triptych("instructions", "ld", "--json", "-")
    rows = validated(done.stdout)["instructions"]
    assert rows
    assert all(row["syntax"].startswith("ld") for row in rows)
    assert set(rows[0]) == {"syntax", "types", "section", "cost", "summary"}


def test_an_unknown_instruction() -> None:
    done = triptych("instructions", "ldd")
    assert done.returncode == 2
    assert "did you mean" in done.stderr


def test_operators() -> None:
    done = triptych("operators", COLUMNS="100")
    assert done.returncode == 0
    for name, one in OPERATORS.items():
        assert f"{name} " in done.stdout
        assert one.computes[:20] in done.stdout
    assert max(map(cell_len, done.stdout.splitlines())) <= 100


def test_one_operator() -> None:
    done = triptych("operators", "rms_norm", COLUMNS="160")
    assert done.returncode == 0
    for told in (
        "(rows, columns)",
        "llama_3_8b",
        "Llama 3 8B: hidden size 4096",
        "epsilon = 1e-05",
        "cancelling",
        "half",
    ):
        assert told in done.stdout
    assert "FLOPs = rows·(4·columns + 2)" in done.stdout
    assert "bytes = |T|·(2·rows·columns + columns)" in done.stdout
    assert "ε is missing" in done.stdout


def test_operators_as_json(tmp_path: Path) -> None:
    (one,) = validated(triptych("operators", "vec_add", "--json", "-").stdout)["operators"]
    assert one["sizes"][0]["bytes"] == {"f32": 12000, "f16": 6000, "bf16": 6000}
    assert one["power"]["f32"]["right"]["error"] <= 1
    assert all(proof["error"] is None or proof["error"] > 1 for proof in one["power"]["bf16"]["wrong"])
    done = triptych("operators", "matmul", "--chip", "a100-80", "--json", "-")
    document = validated(done.stdout)
    assert document["chip"] == "a100-80"
    sizes = {size["name"]: size for size in document["operators"][0]["sizes"]}
    assert sizes["llama_3_8b_gate"]["bound"] == {"f32": "matrix", "f16": "matrix", "bf16": "matrix"}
    file = tmp_path / "operators.json"
    assert triptych("operators", "--json", str(file)).returncode == 0
    assert [one["name"] for one in validated(file.read_text(encoding="utf-8"))["operators"]] == list(OPERATORS)


def test_an_unknown_operator_is_one_clear_message() -> None:
    done = triptych("operators", "sofmax")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[0] == "triptych: unknown operator 'sofmax'"
    assert "did you mean softmax" in done.stderr
