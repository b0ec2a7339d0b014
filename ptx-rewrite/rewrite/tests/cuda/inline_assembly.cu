// What people write by hand: guards, scopes, register names of their own, vectors with holes.
__device__ int variable[8];
__constant__ int constants[4];
__managed__ int managed;

__global__ void forms(int* p, unsigned char* bytes, double4* wide, unsigned long long* words, unsigned n) {
    __shared__ int tile[32];
    int r, t = 0;
    tile[threadIdx.x & 31] = n;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u32 %0, [%1]; @!p ld.u32 %0, [%1+4]; }" : "=r"(r) : "l"(p), "r"(n));
    variable[1] = r;
    asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; @p bar.red.popc.u32 %0, 0, p; @p bar.red.or.pred p, 1, p;\n"
                 "@p bar.sync 0; bar.red.and.pred q, 0, !p; selp.u32 %0, 1, 0, q; barrier.sync 0; bar.sync 1, 64;\n"
                 "bar.arrive 2, 64; bar.warp.sync 0xffffffff; @p bar.warp.sync -1; bar.warp.sync %1; }" : "=r"(t) : "r"(n));
    variable[2] = t + constants[n & 3] + managed + tile[n & 31];
    asm volatile("red.release.gpu.global.add.u32 [%0], 1; red.shared.add.u32 [%1], 1; red.add.u32 [%0+4], 1;\n"
                 "atom.relaxed.cta.global.add.u32 %2, [%0], 1;" ::"l"(p), "r"(0), "r"(t));
    asm volatile("st.volatile.global.u8 [%0], %1; st.relaxed.sys.global.v2.u32 [%0+8], {%1, %1};\n"
                 "ld.acquire.cta.u32 %1, [%0]; ldu.global.u32 %1, [%0];" ::"l"(p), "r"(n));
    asm volatile("st.global.u32 [variable+4], %0; ld.global.u32 %0, [variable]; ld.global.u32 %0, [%1+-4];\n"
                 "prefetch.global.L2 [%1];" ::"r"(n), "l"(p));
    asm volatile("{ .reg .u64 a; mov.u64 a, %0; ld.u32 %1, [a]; { .reg .u64 a; mov.u64 a, %0; st.u32 [a], %1; } }" ::"l"(p), "r"(n));
    bytes[n] = bytes[n + 1];
    wide[n] = wide[n + 1];
    atomicAdd((float*)p, 1.f);
    atomicCAS(words, 1ull, 2ull);
    atomicAdd_block(p, 1);
    atomicExch_system(p, 2);
}
