"""The demo's array type."""

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
