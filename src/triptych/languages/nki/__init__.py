"""NKI: kernels for NeuronCores, traced into instructions. Both generations: `import nki` and `import neuronxcc.nki`."""

from triptych.languages.nki import isa, language, nki
from triptych.languages.nki.activate import activate, deactivate, installed
from triptych.languages.nki.launching.captures import Capture
from triptych.languages.nki.launching.jit import jit
from triptych.languages.nki.launching.kernel import Kernel

__all__ = ["Capture", "Kernel", "activate", "deactivate", "installed", "isa", "jit", "language", "nki"]
