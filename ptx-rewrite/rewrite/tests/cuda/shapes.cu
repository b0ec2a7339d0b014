// Templates, private arrays behind generic pointers, tables of branches, launch bounds, matrices, textures.
#include <mma.h>
using namespace nvcuda;

__global__ void image(cudaTextureObject_t texture, cudaSurfaceObject_t surface, float* p) {
    p[0] = tex2D<float>(texture, 1.f, 2.f);
    surf2Dwrite(1.f, surface, 4, 4);
}
__global__ void matrix(half* a, half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.f);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
__global__ __launch_bounds__(256, 2) void bounded(char* p, short* q, char4* r, uint4* u) {
    p[threadIdx.x] = q[1];
    r[0] = r[1];
    u[1] = u[2];
    switch (p[3]) {
    case 0: q[0] = 1; break;
    case 1: q[1] = 9; break;
    case 2: q[2] = 5; break;
    case 3: q[3] = 7; break;
    case 4: q[9] = 33; break;
    case 5: q[5] = 3; break;
    default: q[6] = 1;
    }
}
template <class T> __global__ void generic(T* p, int n) {
    T own[16];
    for (int i = 0; i < 16; i++) own[i] = p[i];
    T* chosen = n ? own : p;
    chosen[n] = 3;
    p[1] = own[n & 15];
}
template __global__ void generic<int>(int*, int);
template __global__ void generic<double>(double*, int);
template __global__ void generic<long long>(long long*, int);
