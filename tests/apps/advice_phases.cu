// Phases of a block without the barrier between them, one kernel for each shape. What the report advises, the clean
// variant does, as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: put `__syncthreads()` after the read at advice_phases.cu:42
//@[racy] says: help: put `__syncthreads()` inside the statement at advice_phases.cu:60: read into a variable first, and write after the barrier
//@[racy] says: help: put `__syncthreads()` after the end of the loop at advice_phases.cu:75
//@[racy] says: help: put `__syncthreads()` after the end of the statement at advice_phases.cu:93, and after the write at advice_phases.cu:95
//@[racy] says: help: put `__syncthreads()` after the call at advice_phases.cu:114
//@[racy] says: help: put `__syncthreads()` after the end of the branch at advice_phases.cu:124
//@[racy] says: help: put `__syncthreads()` after the read at advice_phases.cu:136
//@[racy] says: help: put `__syncthreads()` before the read at advice_phases.cu:152
//@[racy] says: help: put `__syncthreads()` after the end of the loop at advice_phases.cu:162
//@[racy] says: help: put `__syncthreads()` after the call at advice_phases.cu:187
//@[racy] says: help: do not return at advice_phases.cu:198: put the code after it into two branches, one up to the first access and one for the second, and `__syncthreads()` between the branches, where all threads of the block pass
//@[racy] says: help: let every thread of the block reach `__syncthreads()`: move it out of the condition or loop that it is in; if threads return early, put the work into a branch instead, without the barrier
//@[racy] says: help: put `__syncwarp()` before the read at advice_phases.cu:220; lanes of a warp do not run in lockstep
//@[racy] says: help: put `__syncwarp()` inside the statement at advice_phases.cu:220: read into a variable first, and write after the barrier; lanes of a warp do not run in lockstep
//@[racy] says: help: put `__syncwarp()` after the write at advice_phases.cu:218; lanes of a warp do not run in lockstep
//@[racy] says: help: put `__syncwarp()` inside the statement at advice_phases.cu:219: read into a variable first, and write after the barrier; lanes of a warp do not run in lockstep
//@[racy] says: SUMMARY: cudarun-check: 15 races, 1 synchronisation error (11 errors, 5 warnings)
#include "app.h"

#ifdef RACY
#define ADVISED(text)
#else
#define ADVISED(text) text
#endif

const int kThreads = 128, kBins = 300;

// Values of neighbours, in place.
__global__ void relax(const int *in, int *out)
{
    __shared__ int s[kThreads + 2];
    int t = threadIdx.x + 1;
    s[t] = in[t];
    if (t == 1) s[0] = 1, s[kThreads + 1] = 2;
    __syncthreads();
    for (int k = 0; k < 3; k++) {
        int sum = s[t - 1] + s[t + 1];
        ADVISED(__syncthreads();)
        s[t] = sum;
        __syncthreads();
    }
    out[t - 1] = s[t];
}

// The same in one statement.
__global__ void relax_at_once(const int *in, int *out)
{
    __shared__ int s[kThreads + 2];
    int t = threadIdx.x + 1;
    s[t] = in[t];
    if (t == 1) s[0] = 1, s[kThreads + 1] = 2;
    __syncthreads();
    for (int k = 0; k < 3; k++) {
#ifdef RACY
        s[t] = s[t - 1] + s[t + 1];
#else
        int sum = s[t - 1] + s[t + 1];
        __syncthreads();
        s[t] = sum;
#endif
        __syncthreads();
    }
    out[t - 1] = s[t];
}

// Clearing, counting, and telling, in loops of which threads take different numbers of turns.
__global__ void count(const int *in, int *out)
{
    __shared__ int bins[kBins];
    for (int i = threadIdx.x; i < kBins; i += blockDim.x)
        bins[i] = 0;
    ADVISED(__syncthreads();)
    for (int i = threadIdx.x; i < 1000; i += blockDim.x)
        atomicAdd(&bins[in[i] % kBins], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < kBins; i += blockDim.x)
        out[i] = bins[i];
}

// A prefix sum whose steps need two barriers each.
__global__ void scan(const int *in, int *out)
{
    __shared__ int s[kThreads];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    for (int d = 1; d < kThreads; d *= 2) {
        int left = t >= d ? s[t - d] : 0;
        ADVISED(__syncthreads();)
        s[t] += left;
        ADVISED(__syncthreads();)
    }
    out[t] = s[t];
}

// A function that uses the same memory in each call.
__device__ int block_sum(int value)
{
    __shared__ int s[kThreads];
    s[threadIdx.x] = value;
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < kThreads; i++) sum += s[i];
    return sum;
}

__global__ void sums(const int *in, int *out)
{
    int first = block_sum(in[threadIdx.x]);
    ADVISED(__syncthreads();)
    int second = block_sum(2 * in[threadIdx.x]);
    out[threadIdx.x] = first + second;
}

// One thread says something to all; the compiler puts the read into both arms of the branch.
__global__ void broadcast(const int *in, int *out)
{
    __shared__ int base;
    if (threadIdx.x == 0) base = in[0];
    ADVISED(__syncthreads();)
    out[threadIdx.x] = base + threadIdx.x;
}

// A block takes pieces of work until there is none left.
__global__ void take(int *counter, int *out)
{
    __shared__ int next;
    while (true) {
        if (threadIdx.x == 0) next = atomicAdd(counter, 1);
        __syncthreads();
        int piece = next;
        ADVISED(__syncthreads();)
        if (piece >= 16) break;
        out[piece * kThreads + threadIdx.x] = piece;
    }
}

// One barrier for three arrays.
__global__ void arrays(const int *in, int *out)
{
    __shared__ int a[kThreads], b[kThreads], c[kThreads];
    int t = threadIdx.x, other = kThreads - 1 - t;
    a[t] = in[t];
    b[t] = 2 * in[t];
    c[t] = 3 * in[t];
    ADVISED(__syncthreads();)
    int sum = a[other] + b[other];
    sum += c[other];
    out[t] = sum;
}

// A tile, by loops that only some threads would enter if the block were larger.
__global__ void transpose(const int *in, int *out)
{
    __shared__ int tile[16][17];
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (int row = y; row < 16; row += 8) tile[row][x] = in[row * 16 + x];
    ADVISED(__syncthreads();)
    for (int row = y; row < 16; row += 8) out[row * 16 + x] = tile[x][row];
}

// Unrolled and inlined.
template <typename T, int Width>
__device__ void store(T *s, const T *in)
{
#pragma unroll
    for (int k = 0; k < Width; k++) s[threadIdx.x + k * kThreads] = in[threadIdx.x + k * kThreads];
}

template <typename T, int Width>
__device__ T gather(const T *s)
{
    T sum = 0;
#pragma unroll
    for (int k = 0; k < Width; k++) sum += s[kThreads - 1 - threadIdx.x + k * kThreads];
    return sum;
}

__global__ void unrolled(const int *in, int *out)
{
    __shared__ int s[4 * kThreads];
    store<int, 4>(s, in);
    ADVISED(__syncthreads();)
    out[threadIdx.x] = gather<int, 4>(s);
}

// Threads leave before both accesses.
__global__ void leave(const int *in, int *out, int n)
{
    __shared__ int s[kThreads];
    int t = threadIdx.x;
#ifdef RACY
    if (t >= n) return;
    s[t] = in[t];
    out[t] = s[n - 1 - t];
#else
    if (t < n) s[t] = in[t];
    __syncthreads();
    if (t < n) out[t] = s[n - 1 - t];
#endif
}

// Steps of a warp, which does not run in step.
__global__ void warp_sum(const int *in, int *out)
{
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 64) s[t] = in[t];
    __syncthreads();
    if (t < 32) {
        volatile int *v = s;
#ifdef RACY
        v[t] += v[t + 32];
        v[t] += v[t + 16];
        v[t] += v[t + 8];
#else
        v[t] += v[t + 32];
        __syncwarp();
        int b = v[t + 16];
        __syncwarp();
        v[t] += b;
        __syncwarp();
        int c = v[t + 8];
        __syncwarp();
        v[t] += c;
#endif
        if (t < 8) out[t] = v[t];
    }
}

int main()
{
    static int data[1024], found[16 * kThreads];
    for (int i = 0; i < 1024; i++) data[i] = i * 7919 % 1009;
    int *in, *out, *counter;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMalloc(&counter, sizeof *counter));
    CHECK(cudaMemset(counter, 0, sizeof *counter));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    bool right = true;
    auto read = [&] {
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    };
    auto check = [&](const char *name, int i, int expected) {
        if (found[i] == expected) return;
        if (right) std::printf("%s: element %d is %d, not %d\n", name, i, found[i], expected);
        right = false;
    };
    int line[kThreads + 2];
    line[0] = 1, line[kThreads + 1] = 2;
    for (int t = 1; t <= kThreads; t++) line[t] = data[t];
    for (int k = 0; k < 3; k++) {
        int before[kThreads + 2];
        for (int t = 0; t < kThreads + 2; t++) before[t] = line[t];
        for (int t = 1; t <= kThreads; t++) line[t] = before[t - 1] + before[t + 1];
    }
    relax<<<1, kThreads>>>(in, out);
    read();
    for (int t = 0; t < kThreads; t++) check("relax", t, line[t + 1]);
    relax_at_once<<<1, kThreads>>>(in, out);
    read();
    for (int t = 0; t < kThreads; t++) check("relax_at_once", t, line[t + 1]);

    int bins[kBins] = {};
    for (int i = 0; i < 1000; i++) bins[data[i] % kBins]++;
    count<<<1, kThreads>>>(in, out);
    read();
    for (int i = 0; i < kBins; i++) check("count", i, bins[i]);

    scan<<<1, kThreads>>>(in, out);
    read();
    for (int t = 0, sum = 0; t < kThreads; t++) check("scan", t, sum += data[t]);

    int sum = 0;
    for (int t = 0; t < kThreads; t++) sum += data[t];
    sums<<<1, kThreads>>>(in, out);
    read();
    for (int t = 0; t < kThreads; t++) check("sums", t, 3 * sum);

    broadcast<<<1, kThreads>>>(in, out);
    read();
    for (int t = 0; t < kThreads; t++) check("broadcast", t, data[0] + t);

    take<<<1, kThreads>>>(counter, out);
    read();
    for (int i = 0; i < 16 * kThreads; i++) check("take", i, i / kThreads);

    arrays<<<1, kThreads>>>(in, out);
    read();
    for (int t = 0; t < kThreads; t++) check("arrays", t, 6 * data[kThreads - 1 - t]);

    transpose<<<1, kThreads>>>(in, out);
    read();
    for (int i = 0; i < 256; i++) check("transpose", i, data[i % 16 * 16 + i / 16]);

    unrolled<<<1, kThreads>>>(in, out);
    read();
    for (int t = 0; t < kThreads; t++) {
        int expected = 0;
        for (int k = 0; k < 4; k++) expected += data[kThreads - 1 - t + k * kThreads];
        check("unrolled", t, expected);
    }

    leave<<<1, kThreads>>>(in, out, 100);
    read();
    for (int t = 0; t < 100; t++) check("leave", t, data[99 - t]);

    warp_sum<<<1, kThreads>>>(in, out);
    read();
    for (int t = 0; t < 8; t++) {
        int expected = 0;
        for (int i = t; i < 64; i += 8) expected += data[i];
        check("warp_sum", t, expected);
    }
    return verdict(right);
}
