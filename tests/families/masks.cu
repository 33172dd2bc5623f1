// Whether the lanes of the mask agree: no intrinsic gives it.
__device__ unsigned uniform(unsigned mask, bool predicate) {
    int result;
    asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; vote.sync.uni.pred q, p, %2; selp.s32 %0, 1, 0, q; }"
                 : "=r"(result) : "r"((int)predicate), "r"(mask));
    return result;
}

// Each group of lanes with one key uses its own mask, all of them in one instruction.
extern "C" __global__ void votes(const int *keys, const int *values, unsigned *out) {
    int lane = threadIdx.x, value = values[lane];
    unsigned group = __match_any_sync(0xffffffffu, keys[lane]);
    int same;
    unsigned *own = out + lane * 7;
    own[0] = group;
    own[1] = __any_sync(group, value > 500);
    own[2] = __all_sync(group, value > -900);
    own[3] = __ballot_sync(group, value > 0);
    own[4] = uniform(group, value > -900);
    own[5] = __match_any_sync(group, value & 1);
    own[6] = __match_all_sync(group, value & 512, &same) * 2u + same;
}

extern "C" __global__ void sums(const int *keys, const int *values, int *out) {
    int lane = threadIdx.x, value = values[lane];
    unsigned group = __match_any_sync(0xffffffffu, keys[lane]);
    int *own = out + lane * 7;
    own[0] = __reduce_add_sync(group, value);
    own[1] = __reduce_min_sync(group, value);
    own[2] = __reduce_max_sync(group, value);
    own[3] = __reduce_max_sync(group, (unsigned)value);
    own[4] = __reduce_and_sync(group, (unsigned)value);
    own[5] = __reduce_or_sync(group, (unsigned)value);
    own[6] = __reduce_xor_sync(group, (unsigned)value);
}

// Moves inside a group: from its first lane, and round its lanes in order.
extern "C" __global__ void moves(const int *keys, const int *values, int *out) {
    int lane = threadIdx.x, value = values[lane];
    unsigned group = __match_any_sync(0xffffffffu, keys[lane]), above = group & ~((2u << lane) - 1);
    int next = (above ? __ffs(above) : __ffs(group)) - 1;
    out[lane * 2] = __shfl_sync(group, value, __ffs(group) - 1);
    __syncwarp(group);
    out[lane * 2 + 1] = __shfl_sync(group, value, next);
}
