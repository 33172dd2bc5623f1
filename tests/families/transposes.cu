// output[x][y] = input[y][x]; `pitch` and `to_pitch` are the elements from row to row.
template <typename T> __global__ void plainly(const T *input, T *output, int width, int height, size_t pitch, size_t to_pitch) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) output[x * to_pitch + y] = input[y * pitch + x];
}

// TILE x TILE through shared memory, ROWS of its rows at a time; PAD columns against bank conflicts; blocks along the
// diagonals where DIAGONAL says so.
template <typename T, int TILE, int ROWS, int PAD, bool DIAGONAL>
__global__ void by_tiles(const T *input, T *output, int width, int height, size_t pitch, size_t to_pitch) {
    __shared__ T tile[TILE][TILE + PAD];
    int column = blockIdx.x, row = blockIdx.y;
    if (DIAGONAL) {
        int rank = blockIdx.x + gridDim.x * blockIdx.y;
        row = rank % gridDim.y;
        column = (rank / gridDim.y + row) % gridDim.x;
    }
    int x = column * TILE + threadIdx.x, y = row * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += ROWS)
        if (x < width && y + k < height) tile[threadIdx.y + k][threadIdx.x] = input[(y + k) * pitch + x];
    __syncthreads();
    x = row * TILE + threadIdx.x;
    y = column * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += ROWS)
        if (x < height && y + k < width) output[(y + k) * to_pitch + x] = tile[threadIdx.x][threadIdx.y + k];
}

// A square matrix in its own place: the blocks above the diagonal change two tiles.
extern "C" __global__ void in_place(float *matrix, int size) {
    __shared__ float upper[16][17], lower[16][17];
    if (blockIdx.y > blockIdx.x) return;
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16, y = blockIdx.y * 16;
    if (x + tx < size && y + ty < size) upper[ty][tx] = matrix[(y + ty) * size + x + tx];
    if (y + tx < size && x + ty < size) lower[ty][tx] = matrix[(x + ty) * size + y + tx];
    __syncthreads();
    if (y + tx < size && x + ty < size) matrix[(x + ty) * size + y + tx] = upper[tx][ty];
    if (x + tx < size && y + ty < size) matrix[(y + ty) * size + x + tx] = lower[tx][ty];
}
