#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
namespace cg = cooperative_groups;

struct alignas(8) Running { float largest, sum; };
__device__ Running joined(Running a, Running b) {
    float largest = fmaxf(a.largest, b.largest);
    if (largest == -INFINITY) return {largest, 0};
    return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

// Token and place: rows of two tables.
extern "C" __global__ void encode(const int *tokens, const float *words, const float *places, float *out, int length, int width) {
    int i = blockIdx.x, row = i % length;
    for (int c = threadIdx.x; c < width; c += blockDim.x) out[i * width + c] = words[tokens[i] * width + c] + places[row * width + c];
}
extern "C" __global__ void encode_backward(const int *tokens, float *words, float *places, const float *out, int length, int width) {
    int i = blockIdx.x, row = i % length;
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
        atomicAdd(&words[tokens[i] * width + c], out[i * width + c]);
        atomicAdd(&places[row * width + c], out[i * width + c]);
    }
}

// A warp for each row; keeps the mean and the inverse deviation.
extern "C" __global__ void layer_norm(const float *input, const float *scale, const float *shift, float *out, float *means,
                                      float *deviations, int rows, int width) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (row >= rows) return;
    const float *x = input + row * width;
    float sum = 0, squares = 0;
    for (int c = warp.thread_rank(); c < width; c += 32) sum += x[c];
    float mean = cg::reduce(warp, sum, cg::plus<float>()) / width;
    for (int c = warp.thread_rank(); c < width; c += 32) squares += (x[c] - mean) * (x[c] - mean);
    float inverse = rsqrtf(cg::reduce(warp, squares, cg::plus<float>()) / width + 1e-5f);
    for (int c = warp.thread_rank(); c < width; c += 32) out[row * width + c] = (x[c] - mean) * inverse * scale[c] + shift[c];
    if (warp.thread_rank() == 0) means[row] = mean, deviations[row] = inverse;
}

// Gradients of the input by rows; of scale and shift first in shared memory, then by atomics.
extern "C" __global__ void layer_norm_backward(const float *d_out, const float *input, const float *scale, const float *means,
                                               const float *deviations, float *d_input, float *d_scale, float *d_shift,
                                               int rows, int width) {
    extern __shared__ float gradients[];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    for (int c = threadIdx.x; c < 2 * width; c += blockDim.x) gradients[c] = 0;
    __syncthreads();
    for (int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank(); row < rows;
         row += gridDim.x * warp.meta_group_size()) {
        float mean = means[row], inverse = deviations[row], sum = 0, product = 0;
        for (int c = warp.thread_rank(); c < width; c += 32) {
            float normed = (input[row * width + c] - mean) * inverse, slope = d_out[row * width + c] * scale[c];
            sum += slope;
            product += slope * normed;
        }
        sum = cg::reduce(warp, sum, cg::plus<float>()) / width;
        product = cg::reduce(warp, product, cg::plus<float>()) / width;
        for (int c = warp.thread_rank(); c < width; c += 32) {
            float normed = (input[row * width + c] - mean) * inverse, slope = d_out[row * width + c];
            atomicAdd(&gradients[c], slope * normed);
            atomicAdd(&gradients[width + c], slope);
            d_input[row * width + c] += (slope * scale[c] - sum - normed * product) * inverse;
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
        atomicAdd(&d_scale[c], gradients[c]);
        atomicAdd(&d_shift[c], gradients[width + c]);
    }
}

// Maximum and sum in one pass over each row, joined over lanes and then over warps; may be in place.
extern "C" __global__ void softmax(const float *input, float *out, int width, float scale) {
    __shared__ Running of_warps[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *x = input + blockIdx.x * (size_t)width;
    Running own = {-INFINITY, 0};
    for (int c = threadIdx.x; c < width; c += blockDim.x) own = joined(own, {x[c] * scale, 1});
    for (int step = 16; step > 0; step /= 2)
        own = joined(own, {__shfl_xor_sync(0xffffffffu, own.largest, step), __shfl_xor_sync(0xffffffffu, own.sum, step)});
    if (lane == 0) of_warps[warp] = own;
    __syncthreads();
    own = of_warps[0];
    for (int w = 1; w < blockDim.x / 32; ++w) own = joined(own, of_warps[w]);
    for (int c = threadIdx.x; c < width; c += blockDim.x)
        out[blockIdx.x * (size_t)width + c] = expf(x[c] * scale - own.largest) / own.sum;
}

// The loss and, in place of the logits, its gradient; `padded` columns from row to row, those beyond `width` set to 0.
extern "C" __global__ void cross_entropy(float *logits, const int *targets, float *losses, float slope, int width, int padded) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    float *x = logits + (size_t)blockIdx.x * padded;
    Running own = {-INFINITY, 0};
    for (int c = warp.thread_rank(); c < width; c += 32) own = joined(own, {x[c], 1});
    for (int step = 16; step > 0; step /= 2) own = joined(own, {warp.shfl_xor(own.largest, step), warp.shfl_xor(own.sum, step)});
    int target = targets[blockIdx.x];
    if (warp.thread_rank() == 0) losses[blockIdx.x] = own.largest + logf(own.sum) - x[target];
    warp.sync();
    for (int c = warp.thread_rank(); c < padded; c += 32) {
        float likely = c < width ? expf(x[c] - own.largest) / own.sum : 0;
        x[c] = c < width ? (likely - (c == target)) * slope : 0;
    }
}

__device__ float gelu_of(float x) { return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x))); }
template <typename T> __global__ void gelu(const T *input, T *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = (T)gelu_of((float)input[i]);
}
extern "C" __global__ void gelu_backward(const float *input, float *gradient, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = input[i], u = 0.79788456f * (x + 0.044715f * x * x * x), t = tanhf(u), c = 1 / (coshf(u) * coshf(u));
    gradient[i] *= 0.5f * (1 + t) + x * 0.5f * c * 0.79788456f * (1 + 3 * 0.044715f * x * x);
}

// A step of Adam with decay of weights, moments in single precision, a copy of the weights in bf16.
extern "C" __global__ void adam(float *weights, __nv_bfloat16 *copy, const float *gradients, float *first, float *second,
                                float rate, float beta1, float beta2, float correction1, float correction2, float tiny,
                                float decay, long long count) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    float g = gradients[i], m = fmaf(beta1, first[i], fmaf(-beta1, g, g)), v = fmaf(beta2, second[i], fmaf(-beta2, g * g, g * g));
    first[i] = m;
    second[i] = v;
    float w = weights[i] - rate * (m / correction1 / (sqrtf(v / correction2) + tiny) + decay * weights[i]);
    weights[i] = w;
    copy[i] = __float2bfloat16_rn(w);
}

// Attention to what came before: a block of 32 queries of one head, 32 keys at a time, sums scaled as the maximum grows.
template <int WIDTH> __global__ void attention(const float *queries, const float *keys, const float *values, float *out, int length) {
    __shared__ float key[32][WIDTH + 1], value[32][WIDTH];
    size_t head = (size_t)blockIdx.y * length * WIDTH;
    int row = blockIdx.x * 32 + threadIdx.x;
    float query[WIDTH], sums[WIDTH] = {}, largest = -INFINITY, total = 0;
    for (int c = 0; c < WIDTH; ++c) query[c] = row < length ? queries[head + row * WIDTH + c] * rsqrtf(WIDTH) : 0;
    for (int start = 0; start <= blockIdx.x * 32; start += 32) {
        for (int i = threadIdx.x; i < 32 * WIDTH; i += 32) {
            int r = start + i / WIDTH, c = i % WIDTH;
            key[i / WIDTH][c] = r < length ? keys[head + r * WIDTH + c] : 0;
            value[i / WIDTH][c] = r < length ? values[head + r * WIDTH + c] : 0;
        }
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < 32 && start + k <= row; ++k) {
            float score = 0;
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) score += query[c] * key[k][c];
            float grown = fmaxf(largest, score), before = expf(largest - grown), weight = expf(score - grown);
            total = total * before + weight;
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) sums[c] = sums[c] * before + weight * value[k][c];
            largest = grown;
        }
        __syncthreads();
    }
    if (row < length)
        for (int c = 0; c < WIDTH; ++c) out[head + row * WIDTH + c] = sums[c] / total;
}
