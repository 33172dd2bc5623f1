"""What `import triton` loads of triptych: one backend that claims no target, one driver that is inactive until asked.

Triton's discovery (3.6 to 3.9) imports `compiler` and `driver` from here while `triton` itself is half imported, and
wants exactly one concrete subclass of `BaseBackend` and `DriverBase` in them. Neither module may import more of
triptych, nor of Triton than `triton.backends`; an error here would break Triton for everybody who has triptych
installed. Both import Triton's modules, never its class names: discovery looks through all names in ours.
"""
