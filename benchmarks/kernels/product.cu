// C = A B, a tile of 16 x 16 results a block; depth is a multiple of 16, rows and columns need not be.
extern "C" __global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                   int rows, int columns, int depth) {
    __shared__ float left[16][16];
    __shared__ float right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < depth; first += 16) {
        left[threadIdx.y][threadIdx.x] = row < rows ? a[row * depth + first + threadIdx.x] : 0.0f;
        right[threadIdx.y][threadIdx.x] = column < columns ? b[(first + threadIdx.y) * columns + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int step = 0; step < 16; ++step) {
            sum += left[threadIdx.y][step] * right[step][threadIdx.x];
        }
        __syncthreads();
    }
    if (row < rows && column < columns) {
        c[row * columns + column] = sum;
    }
}
