// y = xᵀ, with x of rows × columns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int SIDE = 32, STEP = 8;

// Tiling: a block takes a tile of 32 × 32, each of its 32 × 8 threads 4 elements.
// Memory: the tile goes through shared memory, so that both its rows and its columns meet global memory as rows: each
// sector is read and written once. A row there has 33 places, that those of a column lie in 32 banks.
// Mapping: threadIdx.x runs along x's rows when they are loaded, and along y's when they are stored.
// Overlap: a thread's 4 loads are under way together; while a block waits at its barrier, others have the memory.
template <typename T> __global__ void transpose(const T *x, T *y, int rows, int columns) {
    __shared__ T tile[SIDE][SIDE + 1];
    const int row = blockIdx.y * SIDE, column = blockIdx.x * SIDE;
    for (int i = threadIdx.y; i < SIDE; i += STEP)
        if (row + i < rows && column + threadIdx.x < columns)
            tile[i][threadIdx.x] = x[size_t(row + i) * columns + column + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < SIDE; i += STEP)
        if (column + i < columns && row + threadIdx.x < rows)
            y[size_t(column + i) * rows + row + threadIdx.x] = tile[threadIdx.x][i];
}
