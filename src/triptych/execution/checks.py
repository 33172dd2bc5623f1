"""The checks that a profile can ask for."""

from __future__ import annotations

from collections.abc import Mapping

CHECKS: Mapping[str, str] = {
    "memcheck": "accesses outside of every allocation, or misaligned; always on, whether asked for or not",
}
"""A check's name, and what it sees."""
