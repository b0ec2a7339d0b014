// What throughput.rs runs. After a change:
// nvcc -O3 -arch=sm_90 -ptx kernels.cu -o kernels.ptx

// Converged arithmetic.

extern "C" __global__ void matrix_product(const float *a, const float *b, float *c, int n) {
    __shared__ float as[16][16], bs[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        as[y][x] = a[row * n + tile + x];
        bs[y][x] = b[(tile + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += as[y][k] * bs[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void n_body(const float4 *bodies, float4 *forces, int n) {
    __shared__ float4 tile[128];
    float4 me = bodies[blockIdx.x * 128 + threadIdx.x];
    float x = 0, y = 0, z = 0;
    for (int start = 0; start < n; start += 128) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 128; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = tile[k].w * inverse * inverse * inverse;
            x += dx * pull;
            y += dy * pull;
            z += dz * pull;
        }
        __syncthreads();
    }
    forces[blockIdx.x * 128 + threadIdx.x] = make_float4(x, y, z, 0);
}

extern "C" __global__ void stencil(const float *in, float *out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1) {
        int at = y * n + x;
        out[at] = 0.2f * (in[at] + in[at - 1] + in[at + 1] + in[at - n] + in[at + n]);
    }
}

// Divergent, or bound by memory. Node i of the graph has the edges starts[i] to starts[i + 1].

extern "C" __global__ void breadth_first(const int *starts, const int *edges, int *level, int n,
                                         int depth, int *changed) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= n || level[node] != depth) return;
    for (int edge = starts[node]; edge < starts[node + 1]; edge++) {
        int next = edges[edge];
        if (level[next] < 0) {
            level[next] = depth + 1;
            *changed = 1;
        }
    }
}

extern "C" __global__ void sparse_product(const int *starts, const int *edges, const float *values,
                                          const float *x, float *y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0;
    for (int at = starts[row]; at < starts[row + 1]; at++) sum += values[at] * x[edges[at]];
    y[row] = sum;
}
