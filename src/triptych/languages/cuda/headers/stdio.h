// What device code uses of <stdio.h> is built into NVRTC; the host's part is not there.
#pragma once
