// What device code uses of <unistd.h> is built into NVRTC; the host's part is not there.
#pragma once
