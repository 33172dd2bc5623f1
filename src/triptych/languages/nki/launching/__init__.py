"""What `@nki.jit` makes of a function: a call is traced, planned and run."""
