typedef float (*operation)(float, float);

struct Pair { float left; float right; };

__device__ __noinline__ float add(float a, float b) { return a + b; }
__device__ __noinline__ float multiply(float a, float b) { return a * b; }
__device__ operation operations[2] = {add, multiply};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ Pair swap(Pair pair) { return Pair{pair.right, pair.left}; }

extern "C" __global__ void call_all(float* values, int* counts, Pair pair, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Pair swapped = swap(pair);
    values[i] = operations[counts[i] & 1](values[i], swapped.left) + swapped.right;
    counts[i] = fibonacci(counts[i]);
}
