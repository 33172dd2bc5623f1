// What device code uses of <string.h> is built into NVRTC; the host's part is not there.
#pragma once
