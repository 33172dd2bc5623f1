"""The tracer, and what a kernel sees of its tensors while it is traced."""
