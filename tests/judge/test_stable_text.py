"""What texts of verdicts leave out: what differs from run to run."""

from __future__ import annotations

from triptych.judge.stable_text import without_addresses, without_numbers_of_processes


def test_objects() -> None:
    assert without_addresses("TypeError: <A object at 0x7f3b2c0d>") == "TypeError: <A object at …>"
    assert without_addresses("[<f at 0x1f>, <g at 0xFF>]") == "[<f at …>, <g at …>]"
    device = "a load of 4 bytes at 0x10000400 is out of bounds"
    assert without_addresses(device) == device


def test_processes() -> None:
    assert without_numbers_of_processes("exit status 134") == "exit status 134"
    told = "Aborted\nThread 0x00007f12 of 4711: a[3] at line 12"
    assert without_numbers_of_processes(told) == "Aborted\nThread … of …: a[3] at line …"
    assert without_numbers_of_processes("") == ""
