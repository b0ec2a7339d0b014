// Functions that are called directly, through a pointer, virtually, recursively, and in no way.
#include <cassert>
#include <cstdio>

__device__ __noinline__ int square(int x, int* p) { p[x] = x; return x * x; }
__device__ __noinline__ void recurse(int n, int* p) { if (n) { p[n] = n; recurse(n - 1, p); } __syncthreads(); }
__device__ __noinline__ void meet() { __syncthreads(); }
__device__ __noinline__ void add_one(int* p) { p[9]++; }

struct Base {
    __device__ virtual int get(int* p) { helper(p); return p[0]; }
    __device__ static __noinline__ void helper(int* p);
};
__device__ __noinline__ void Base::helper(int* p) { p[3] = 4; }
struct Derived : Base {
    __device__ int get(int* p) override { helper(p); __syncthreads(); return p[1]; }
};

typedef int (*Function)(int, int*);
__device__ Function table[1] = {square};

__global__ void direct(int* p, int n) {
    if (threadIdx.x < n) p[1] = square(n, p);
    meet();
    recurse(n, p);
    Base::helper(p);
    __syncwarp();
}
__global__ void pointer(int* p, int n) { p[0] = table[n](n, p); }
__global__ void virtually(int* p, int n) {
    Derived derived;
    Base base;
    Base* chosen = n ? &derived : &base;
    p[2] = chosen->get(p);
}
__global__ void library(int* p) {
    printf("%d\n", p[threadIdx.x]);
    assert(p[0]);
    int* fresh = new int[4];
    fresh[0] = 1;
    p[5] = fresh[0];
    delete[] fresh;
}
struct Large { char bytes[4080]; };
__global__ void large(Large large, int* p) { p[large.bytes[p[1]]] = 1; add_one(p); }
__global__ void without_parameters() { table[0] = nullptr; }
