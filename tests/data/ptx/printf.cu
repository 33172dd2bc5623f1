#include <assert.h>

extern "C" __global__ void say(const int* values, int n) {
    int i = threadIdx.x;
    assert(n > 0);
    if (i < n) printf("thread %d holds %d and %f\n", i, values[i], values[i] * 0.5);
}
