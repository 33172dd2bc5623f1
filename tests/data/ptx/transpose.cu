extern "C" __global__ void transpose(const double* __restrict__ source, double* __restrict__ target, int rows, int columns) {
    extern __shared__ double tile[];
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int step = threadIdx.y; step < 32; step += blockDim.y) {
        int y = blockIdx.y * 32 + step;
        if (x < columns && y < rows) tile[step * 33 + threadIdx.x] = source[(long long)y * columns + x];
    }
    __syncthreads();
    int to_x = blockIdx.y * 32 + threadIdx.x;
    for (int step = threadIdx.y; step < 32; step += blockDim.y) {
        int to_y = blockIdx.x * 32 + step;
        if (to_x < rows && to_y < columns) target[(long long)to_y * rows + to_x] = tile[threadIdx.x * 33 + step];
    }
}
