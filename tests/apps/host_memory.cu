// Memory of the host that the device reaches: allocated in every way, registered, by addresses of the device's own and
// by the same one; and what is told about it.
// Racy: two blocks write the same words of it.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"
#include <cstdlib>
#include <cstring>

const int n = 512;

__global__ void add(const int *in, int *out, int more) {
#ifdef RACY
    int i = threadIdx.x + blockIdx.x * 8;
    out[i] = in[i] + more + blockIdx.x;  //~ race A A
#else
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + more;
#endif
}

static bool holds(const int *data, int first) {
    for (int i = 0; i < n; i++) {
        if (data[i] != first + i) return false;
    }
    return true;
}

int main() {
    bool right = true;
    int *pinned, *mapped, *combined, *old, *device_mapped, *device_registered, *device;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    CHECK(cudaMallocHost(&old, n * sizeof(int)));
    CHECK(cudaHostAlloc(&pinned, n * sizeof(int), cudaHostAllocDefault));
    CHECK(cudaHostAlloc(&mapped, n * sizeof(int), cudaHostAllocMapped | cudaHostAllocPortable));
    CHECK(cudaHostAlloc(&combined, n * sizeof(int), cudaHostAllocWriteCombined | cudaHostAllocMapped));
    unsigned flags;
    CHECK(cudaHostGetFlags(&flags, mapped));
    right = right && (flags & cudaHostAllocMapped) && (flags & cudaHostAllocPortable);
    for (int i = 0; i < n; i++) old[i] = pinned[i] = mapped[i] = combined[i] = i;

    // Straight from the host's memory, and into it.
    CHECK(cudaHostGetDevicePointer(&device_mapped, mapped, 0));
    add<<<n / 64, 64>>>(device_mapped, device, 10);
    CHECK(cudaMemcpy(old, device, n * sizeof(int), cudaMemcpyDeviceToHost));
    right = right && holds(old, 10);
    int *device_combined;
    CHECK(cudaHostGetDevicePointer(&device_combined, combined, 0));
    add<<<n / 64, 64>>>(device, device_combined, 5);
    CHECK(cudaDeviceSynchronize());
    right = right && holds(combined, 15);
    // One address space for all.
    add<<<n / 64, 64>>>(combined, pinned, 7);
    CHECK(cudaDeviceSynchronize());
    right = right && holds(pinned, 22);

    // Memory of the program's own.
    int *own = static_cast<int *>(std::aligned_alloc(4096, 4096));
    for (int i = 0; i < n; i++) own[i] = 3 * i;
    CHECK(cudaHostRegister(own, 4096, cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer(&device_registered, own, 0));
    right = right && cudaHostRegister(own, 4096, cudaHostRegisterMapped) == cudaErrorHostMemoryAlreadyRegistered;
    right = right && cudaPeekAtLastError() == cudaErrorHostMemoryAlreadyRegistered;
    right = right && cudaGetLastError() == cudaErrorHostMemoryAlreadyRegistered && cudaPeekAtLastError() == cudaSuccess;
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, own + 9));
    right = right && attributes.type == cudaMemoryTypeHost && attributes.hostPointer == own + 9;
    right = right && attributes.devicePointer == device_registered + 9;
    add<<<n / 64, 64>>>(device, device_registered, -10);
    CHECK(cudaDeviceSynchronize());
    right = right && holds(own, 0);
    CHECK(cudaHostUnregister(own));
    right = right && cudaHostUnregister(own) == cudaErrorHostMemoryNotRegistered;
    cudaGetLastError();
    CHECK(cudaPointerGetAttributes(&attributes, own));
    right = right && attributes.type == cudaMemoryTypeUnregistered;
    std::free(own);

    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFreeHost(mapped));
    CHECK(cudaFreeHost(combined));
    CHECK(cudaFreeHost(old));
    right = right && cudaFreeHost(old) == cudaErrorInvalidValue;
    return verdict(right);
}
