"""Reports: what was counted and modelled, for a person (terminal) and for a program (JSON). Nothing here prints."""

from triptych.report.json_report import SCHEMA, document, dumps, launch_json, schema
from triptych.report.launch import Launch, is_clean

__all__ = ["SCHEMA", "Launch", "document", "dumps", "is_clean", "launch_json", "schema"]
