// What device code uses of <sys/time.h> is built into NVRTC; the host's part is not there.
#pragma once
