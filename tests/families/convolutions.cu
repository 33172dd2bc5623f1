#define RADIUS 4

__constant__ float WEIGHTS[2 * RADIUS + 1];
struct Border { float value; int clamp; };
__constant__ Border BORDER;
__device__ unsigned long long rows_done = 0;

__device__ float at(const float *image, int x, int y, int width, int height, int pitch) {
    if (BORDER.clamp) x = min(max(x, 0), width - 1), y = min(max(y, 0), height - 1);
    return x < 0 || y < 0 || x >= width || y >= height ? BORDER.value : image[y * pitch + x];
}

// Each row: a tile with its halo in shared memory.
extern "C" __global__ void along_rows(const float *image, float *out, int width, int height, int pitch) {
    __shared__ float tile[4][32 + 2 * RADIUS];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    for (int i = threadIdx.x; i < 32 + 2 * RADIUS; i += 32)
        tile[threadIdx.y][i] = at(image, blockIdx.x * 32 + i - RADIUS, y, width, height, pitch);
    __syncthreads();
    if (x >= width || y >= height) return;
    float sum = 0;
#pragma unroll
    for (int k = -RADIUS; k <= RADIUS; ++k) sum += WEIGHTS[RADIUS - k] * tile[threadIdx.y][threadIdx.x + RADIUS + k];
    out[y * pitch + x] = sum;
    if (x == 0) atomicAdd(&rows_done, 1ull);
}

extern "C" __global__ void along_columns(const float *image, float *out, int width, int height, int pitch) {
    __shared__ float tile[16][8 + 2 * RADIUS + 1];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    for (int i = threadIdx.y; i < 8 + 2 * RADIUS; i += 8)
        tile[threadIdx.x][i] = at(image, x, blockIdx.y * 8 + i - RADIUS, width, height, pitch);
    __syncthreads();
    if (x >= width || y >= height) return;
    float sum = 0;
#pragma unroll
    for (int k = -RADIUS; k <= RADIUS; ++k) sum += WEIGHTS[RADIUS - k] * tile[threadIdx.x][threadIdx.y + RADIUS + k];
    out[y * pitch + x] = sum;
}
