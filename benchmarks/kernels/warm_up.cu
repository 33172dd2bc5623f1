// Touches memory in the ways that product.cu does, so that whatever the compiler shares between kernels is there.
extern "C" __global__ void warm_up(const float* __restrict__ a, float* c) {
    __shared__ float tile[32];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    c[threadIdx.x] += tile[threadIdx.x ^ 1];
}
