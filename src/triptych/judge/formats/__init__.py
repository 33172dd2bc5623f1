"""Formats of candidates: how a source says what it computes. A file each; `table.py` lists them."""
