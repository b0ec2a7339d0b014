// What every program in this folder needs: sizes by name, memory on the device, and a result that is checked.
// The programs have the computational patterns of the Rodinia suite (Che et al., IISWC 2009), written anew from
// what is published of the algorithms; none of its source is used.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                         \
    do {                                                                                    \
        cudaError_t call_status = (call);                                                   \
        if (call_status != cudaSuccess) {                                                   \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(call_status));\
            std::exit(2);                                                                   \
        }                                                                                   \
    } while (0)

// The one of three values that the first argument names: small is for the simulated device, medium and large are
// for GPUs.
inline int pick(int argc, char **argv, int small, int medium, int large) {
    const char *size = argc > 1 ? argv[1] : "small";
    if (argc <= 2 && std::strcmp(size, "small") == 0) return small;
    if (argc <= 2 && std::strcmp(size, "medium") == 0) return medium;
    if (argc <= 2 && std::strcmp(size, "large") == 0) return large;
    std::printf("usage: %s small|medium|large\n", argv[0]);
    std::exit(2);
}

// An array on the device.
template <class T>
class Buffer {
public:
    explicit Buffer(size_t count) : count(count) { CHECK(cudaMalloc(&at, count * sizeof(T))); }
    explicit Buffer(const std::vector<T> &from) : Buffer(from.size()) { upload(from); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() { cudaFree(at); }

    operator T *() const { return at; }

    void upload(const std::vector<T> &from) {
        CHECK(cudaMemcpy(at, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
    std::vector<T> download() const {
        std::vector<T> into(count);
        CHECK(cudaMemcpy(into.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
        return into;
    }
    void zero() { CHECK(cudaMemset(at, 0, count * sizeof(T))); }

    friend void swap(Buffer &a, Buffer &b) {
        T *at = a.at;
        a.at = b.at;
        b.at = at;
    }

private:
    T *at;
    size_t count;
};

// A reproducible generator (Numerical Recipes' constants), so that every run sees the same input.
struct Random {
    unsigned state;
    unsigned operator()(unsigned below) {
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % below;
    }
    // In [0, 1), a multiple of 1 / 4096.
    float unit() { return (*this)(4096) / 4096.0f; }
};

inline int blocks(long long count, int size) { return int((count + size - 1) / size); }

// The device contracts multiplications and additions, and sums in another order.
inline bool close(double a, double b, double relative = 1e-3) {
    return std::fabs(a - b) <= relative * (1.0 + std::fabs(b));
}

template <class T>
bool all_close(const std::vector<T> &a, const std::vector<T> &b, double relative = 1e-3) {
    bool right = a.size() == b.size();
    for (size_t i = 0; right && i < a.size(); i++) right = close(a[i], b[i], relative);
    return right;
}

// Says whether the device agrees with the CPU; the program's exit code.
inline int verdict(bool right) {
    std::printf("result: %s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
