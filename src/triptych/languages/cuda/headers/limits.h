// <limits.h>, as libcu++ has it.
#pragma once
#include <cuda/std/climits>
