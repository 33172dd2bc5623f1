extern "C" __global__ void wait_for(unsigned* flag, unsigned* output) {
    __shared__ unsigned long long barrier;
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address), "r"(blockDim.x));
    __syncthreads();
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    for (int phase = 0; phase < 2; ++phase) {
        asm volatile(
            "{\n\t.reg .b64 state;\n\t.reg .pred complete;\n\t"
            "mbarrier.arrive.shared.b64 state, [%0];\n"
            "waitLoop:\n\tmbarrier.test_wait.shared.b64 complete, [%0], state;\n\t"
            "@!complete bra.uni waitLoop;\n\t}" ::"r"(address) : "memory");
    }
    asm volatile(
        "{ .reg .pred complete; setp.ne.u32 complete, %0, 0; @complete bra skipWait; st.global.u32 [%1], WARP_SZ;\n skipWait: }"
        ::"r"(lane), "l"(flag) : "memory");
    asm volatile(
        "{ .reg .pred complete; setp.ne.u32 complete, %0, 1; @complete bra skipWait; st.global.u32 [%1+4], 0x7fU;\n skipWait: }"
        ::"r"(lane), "l"(flag) : "memory");
    output[threadIdx.x] = lane;
}
