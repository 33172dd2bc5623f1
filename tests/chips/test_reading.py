"""What a chip file must not hold: every complaint names the file, the key and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

import triptych.chips
from triptych.chips.reading import read
from triptych.core.errors import ChipError

DATA = Path(triptych.chips.__file__).parent / "data"
H100 = (DATA / "h100.toml").read_text(encoding="utf-8")
TRN2 = (DATA / "trn2.toml").read_text(encoding="utf-8")


def with_line(key: str, line: str, text: str = H100) -> str:
    """The file with the line of `key` replaced."""
    lines = text.splitlines()
    (index,) = (i for i, old in enumerate(lines) if old.startswith(f"{key} ="))
    lines[index] = line
    return "\n".join(lines)


def complaint(text: str) -> str:
    with pytest.raises(ChipError) as caught:
        read(text, "my.toml")
    message = str(caught.value)
    assert "my.toml" in message
    return message


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("-1.0", "value is -1; expected a number from"),
        ("0", "value is 0; expected a number from"),
        ("nan", "value is nan; expected a number from"),
        ("inf", "value is inf; expected a number from"),
        ("true", "value is True; expected a number from"),
        ('"3.35 TB/s"', "value is '3.35 TB/s'; expected a number from"),
        ("1e30", "value is 1e+30; expected a number from 1e+08 to 1e+16 B/s"),
        ("3.35", "value is 3.35; expected a number from"),
    ],
)
def test_nonsense_values(value: str, expected: str) -> None:
    line = f'dram_bytes_per_s = {{ value = {value}, unit = "B/s", source = "me" }}'
    message = complaint(with_line("dram_bytes_per_s", line))
    assert "key 'dram_bytes_per_s'" in message
    assert expected in message


def test_a_count_must_be_whole() -> None:
    line = 'sm_count = { value = 13.5, unit = "SMs", source = "me" }'
    assert "value is 13.5; expected a whole number from 1" in complaint(with_line("sm_count", line))


def test_missing_value() -> None:
    message = complaint(with_line("sm_count", ""))
    assert "key 'sm_count': is missing; expected a whole number" in message
    assert 'write sm_count = { value = …, unit = "SMs", source = "…" }' in message


def test_missing_value_inside() -> None:
    assert "key 'sm_count': has no value" in complaint(
        with_line("sm_count", 'sm_count = { unit = "SMs", source = "x" }')
    )


@pytest.mark.parametrize("source", ["", ', source = ""', ', source = " "', ", source = 3"])
def test_missing_source(source: str) -> None:
    message = complaint(with_line("sm_count", f'sm_count = {{ value = 132, unit = "SMs"{source} }}'))
    assert "key 'sm_count': has no source" in message


def test_a_bare_value_has_no_source() -> None:
    assert "key 'sm_count': is 132, without a source" in complaint(with_line("sm_count", "sm_count = 132"))


def test_wrong_unit() -> None:
    line = 'dram_bytes_per_s = { value = 3350.0, unit = "GB/s", source = "me" }'
    assert "has the unit 'GB/s'; expected 'B/s'" in complaint(with_line("dram_bytes_per_s", line))


def test_unknown_key_with_a_near_one() -> None:
    line = 'dram_byte_per_s = { value = 3.35e12, unit = "B/s", source = "me" }'
    message = complaint(with_line("dram_bytes_per_s", line))
    assert "key 'dram_byte_per_s': is not a key of a chip file" in message
    assert "did you mean 'dram_bytes_per_s'?" in message


def test_unknown_key_inside_a_value() -> None:
    line = 'sm_count = { value = 132, unit = "SMs", source = "me", sauce = "x" }'
    assert "key 'sm_count.sauce'" in complaint(with_line("sm_count", line))


def test_unknown_pipe() -> None:
    message = complaint(H100 + '"tensor.fp16" = { value = 1e15, unit = "FLOP/s", source = "me" }\n')
    assert "key 'flops_per_s.tensor.fp16'" in message
    assert "did you mean 'flops_per_s.tensor.f" in message


def test_missing_required_peak() -> None:
    assert "key 'flops_per_s.f32': is missing" in complaint(with_line("f32", ""))


def test_missing_optional_peak() -> None:
    assert "tensor.fp8" not in read(with_line('"tensor.fp8"', ""), "my.toml").flops_per_s


def test_no_peaks() -> None:
    assert "key 'flops_per_s': is missing" in complaint(H100.split("[flops_per_s]")[0])


@pytest.mark.parametrize("line", ['family = "tpu"', "family = 3", 'family = ""', ""])
def test_unknown_family(line: str) -> None:
    told = complaint(with_line("family", line))
    assert "key 'family'" in told
    assert "expected one of 'gpu', 'neuron'" in told


def test_malformed_words() -> None:
    line = 'target = { value = "hopper", source = "me" }'
    assert 'expected a compile target such as "sm_90"' in complaint(with_line("target", line))
    line = 'core_generation = { value = "v3", source = "me" }'
    assert 'expected a generation of NeuronCore such as "gen3"' in complaint(with_line("core_generation", line, TRN2))


def test_not_toml() -> None:
    assert "not a TOML file" in complaint("name = ")


@pytest.mark.parametrize(
    ("key", "value", "other"),
    [
        ("shared_bytes_per_block_max", '233_472, unit = "B"', "shared_bytes_per_sm"),
        ("max_threads_per_block", '4096, unit = "threads"', "max_warps_per_sm"),
        ("l2_bytes_per_s", '1.0e12, unit = "B/s"', "l2_bytes_per_s"),
    ],
)
def test_values_that_contradict_each_other(key: str, value: str, other: str) -> None:
    assert f"more than '{other}' allows" in complaint(with_line(key, f'{key} = {{ value = {value}, source = "me" }}'))


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "1" * 5000], ids=["deep", "long"])
def test_what_the_parser_gives_up_on(text: str) -> None:
    assert complaint(text).startswith("not a TOML file: ")


def test_a_number_beyond_every_float() -> None:
    line = f'dram_bytes_per_s = {{ value = {10**400}, unit = "B/s", source = "me" }}'
    assert "expected a number from 1e+08 to 1e+16 B/s" in complaint(with_line("dram_bytes_per_s", line))


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("title", 'title = "\\u001b[31mred"'),
        ("sm_count.source", 'sm_count = { value = 132, unit = "SMs", source = "\\u009b0m" }'),
    ],
)
def test_control_characters(key: str, line: str) -> None:
    message = complaint(with_line(key.split(".")[0], line))
    assert f"key '{key}'" in message
    assert "expected no control characters" in message
    assert message.isprintable() or "\n" in message


def test_an_unknown_users_home_directory() -> None:
    with pytest.raises(ChipError, match="cannot read the chip file"):
        triptych.chips.load("~nobody-of-that-name/chip.toml")


def with_factors(low: str, high: str) -> str:
    """A file whose error bar has those ends, as far as they are not empty."""
    plain = "\n".join(line for line in H100.splitlines() if not line.startswith("time_factor"))
    ends = {"time_factor_low": low, "time_factor_high": high}
    lines = [
        f'{key} = {{ value = {end}, unit = "measured/modelled", source = "me" }}' for key, end in ends.items() if end
    ]
    return plain.replace("# Dense peaks", "\n".join([*lines, "# Dense peaks"]), 1)


def test_an_error_bar_has_both_ends() -> None:
    bar = read(with_factors("0.9", "2.5"), "my.toml").error_bar
    assert bar is not None
    assert (bar.low, bar.high, bar.source) == (0.9, 2.5, "me")
    assert read(with_factors("", ""), "my.toml").error_bar is None
    assert "key 'time_factor_low': is missing; there is the other end" in complaint(with_factors("", "2.5"))
    assert "comes to 3, more than 'time_factor_high' allows (2.5)" in complaint(with_factors("3", "2.5"))
