"""Runs what the languages ask for: memory, launches, plans and profiles."""
