// Walsh and Hadamard's transform of rows of `length` (a power of two) in shared memory.
extern "C" __global__ void walsh_in_block(float *data, int length) {
    extern __shared__ float row[];
    float *own = data + (size_t)blockIdx.x * length;
    for (int i = threadIdx.x; i < length; i += blockDim.x) row[i] = own[i];
    for (int step = length / 2; step > 0; step /= 2) {
        __syncthreads();
        for (int i = threadIdx.x; i < length / 2; i += blockDim.x) {
            int at = 2 * i - (i & (step - 1));
            float a = row[at], b = row[at + step];
            row[at] = a + b;
            row[at + step] = a - b;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < length; i += blockDim.x) own[i] = row[i];
}

// Two of its steps at once on global memory: 4 elements `step` apart.
extern "C" __global__ void walsh_by_four(float *data, int step, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count / 4) return;
    float *at = data + (i / step) * 4 * step + i % step;
    float a = at[0], b = at[step], c = at[2 * step], d = at[3 * step];
    float ac = a + c, bd = b + d, a_c = a - c, b_d = b - d;
    at[0] = ac + bd; at[step] = ac - bd; at[2 * step] = a_c + b_d; at[3 * step] = a_c - b_d;
}

// The cosine transform of 8 x 8 blocks, BLOCKS of them side by side: rows and columns from one table in constants.
__constant__ float HALF_COSINES[8] = {0.5f, 0.49039264f, 0.46193977f, 0.41573481f, 0.35355339f, 0.27778512f, 0.19134172f,
                                      0.09754516f};
__device__ float basis(int frequency, int at) {
    if (frequency == 0) return HALF_COSINES[4];
    int angle = (2 * at + 1) * frequency % 32;
    if (angle > 16) angle = 32 - angle;
    return angle > 8 ? -HALF_COSINES[16 - angle] : angle == 8 ? 0.0f : HALF_COSINES[angle];
}

template <bool BACK, int BLOCKS> __global__ void cosines(const float *input, float *output, int pitch) {
    __shared__ float tile[8][8 * BLOCKS + 1], half[8][8 * BLOCKS + 1];
    int x = threadIdx.x, y = threadIdx.y, u = x % 8, first = x - u;
    size_t at = (size_t)(blockIdx.y * 8 + y) * pitch + blockIdx.x * 8 * BLOCKS + x;
    tile[y][x] = input[at];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += tile[y][first + k] * (BACK ? basis(k, u) : basis(u, k));
    half[y][x] = sum;
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += half[k][x] * (BACK ? basis(k, y) : basis(y, k));
    output[at] = sum;
}

// Coefficients to whole numbers of steps, halves away from zero, on 16-bit integers in place.
extern "C" __global__ void quantize(short *coefficients, const short *steps, int pitch) {
    short &own = coefficients[(blockIdx.y * 8 + threadIdx.y) * pitch + blockIdx.x * 8 + threadIdx.x];
    int value = own, step = steps[threadIdx.y * 8 + threadIdx.x];
    int count = (abs(value) + step / 2) / step;
    own = (value < 0 ? -count : count) * step;
}
