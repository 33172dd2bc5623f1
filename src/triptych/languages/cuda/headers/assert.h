// What device code uses of <assert.h> is built into NVRTC; the host's part is not there.
#pragma once
