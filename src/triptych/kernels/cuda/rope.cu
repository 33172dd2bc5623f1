// Pairs of elements half a head apart, turned by the token's angles: y₁ = x₁ cos - x₂ sin, y₂ = x₂ cos + x₁ sin. x and y
// are tokens × heads × d, cos and sin tokens × d / 2.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Tiling: a block takes a token, each of its threads every blockDim.x-th pair of its heads.
// Memory: x is read and written once; cos and sin come from L1 for all heads but the first.
// Mapping: neighbouring threads take neighbouring pairs, so that both halves of a head are read as rows.
// Overlap: a pair's loads are under way together; other warps hide the rest of their time.
template <typename T>
__global__ void rope(const T *x, const float *cos, const float *sin, T *y, int heads, int d) {
    const int half_d = d / 2;
    x += size_t(blockIdx.x) * heads * d, y += size_t(blockIdx.x) * heads * d;
    cos += size_t(blockIdx.x) * half_d, sin += size_t(blockIdx.x) * half_d;
    for (int pair = threadIdx.x; pair < heads * half_d; pair += blockDim.x) {
        const int column = pair % half_d, place = pair / half_d * d + column;
        const float first = x[place], second = x[place + half_d];
        y[place] = T(first * cos[column] - second * sin[column]);
        y[place + half_d] = T(second * cos[column] + first * sin[column]);
    }
}
