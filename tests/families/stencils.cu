// 3-D, RADIUS neighbours along each axis: a block marches along z with a queue of planes in registers. The field is
// padded by RADIUS on every side; `pitch` and `plane` are elements.
template <typename T, int RADIUS>
__global__ void march(const T *input, T *output, const T *weights, int nx, int ny, int nz, int pitch, int plane) {
    constexpr int ROWS = 8 + 2 * RADIUS, COLUMNS = 16 + 2 * RADIUS;
    __shared__ T tile[ROWS][COLUMNS];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    int tx = threadIdx.x + RADIUS, ty = threadIdx.y + RADIUS;
    int at = min(y, ny - 1) * pitch + min(x, nx - 1) + RADIUS * (pitch + 1);
    T queue[2 * RADIUS + 1];
#pragma unroll
    for (int i = 0; i < 2 * RADIUS; ++i) queue[i + 1] = input[i * plane + at];
    for (int z = 0; z < nz; ++z) {
#pragma unroll
        for (int i = 0; i < 2 * RADIUS; ++i) queue[i] = queue[i + 1];
        queue[2 * RADIUS] = input[(z + 2 * RADIUS) * plane + at];
        const T *centre = input + (z + RADIUS) * plane;
        __syncthreads();
        for (int i = threadIdx.y * 16 + threadIdx.x; i < ROWS * COLUMNS; i += 128) {
            int row = min(blockIdx.y * 8 + i / COLUMNS, ny + 2 * RADIUS - 1);
            tile[i / COLUMNS][i % COLUMNS] = centre[row * pitch + min(blockIdx.x * 16 + i % COLUMNS, nx + 2 * RADIUS - 1)];
        }
        __syncthreads();
        if (x >= nx || y >= ny) continue;
        T sum = weights[0] * queue[RADIUS];
#pragma unroll
        for (int i = 1; i <= RADIUS; ++i)
            sum += weights[i] * (queue[RADIUS - i] + queue[RADIUS + i] + tile[ty - i][tx] + tile[ty + i][tx] +
                                 tile[ty][tx - i] + tile[ty][tx + i]);
        output[(z + RADIUS) * plane + at] = sum;
    }
}

// Two fields that drive each other, half a step apart, in one dimension; `field` is in place.
extern "C" __global__ void drive(float *field, const float *other, int count, int shift, float coefficient) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < count - 1) field[i] += coefficient * (other[i + shift] - other[i + shift - 1]);
}

// The average of the four neighbours, on a pitched field that wraps around.
extern "C" __global__ void average(const double *input, double *output, int width, int height, size_t pitch_in_bytes) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    auto row = [&](int r) { return (const double *)((const char *)input + (r + height) % height * pitch_in_bytes); };
    double sum = row(y - 1)[x] + row(y + 1)[x] + row(y)[(x + width - 1) % width] + row(y)[(x + 1) % width];
    ((double *)((char *)output + y * pitch_in_bytes))[x] = sum / 4;
}
