// C = A B for square matrices whose extent is a multiple of 32: a tile of 32 x 32 results a block, tiles in shared memory.
extern "C" __global__ void sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
    __shared__ float left[32][32];
    __shared__ float right[32][32];
    int row = blockIdx.y * 32 + threadIdx.y;
    int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < n; first += 32) {
        left[threadIdx.y][threadIdx.x] = a[row * n + first + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; ++k) {
            sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        }
        __syncthreads();
    }
    c[row * n + column] = sum;
}
