// What device code uses of <cuda_profiler_api.h> is built into NVRTC; the host's part is not there.
#pragma once
