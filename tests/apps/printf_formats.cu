// Every conversion of printf, with flags, widths, precisions and sizes: what the device prints is what the host's
// printf makes of the same values.
// A device's limit for what waits to be printed can be set and read; nothing is lost here when there is more.
//@ variants: clean
//@[clean] expect: no-race
#include "app.h"
#include <cstdarg>
#include <limits>
#include <string>
#include <unistd.h>
#include <vector>

// The same lines for both.
#define FORMATS(PRINT)                                                                                        \
    PRINT("d [%d] [%i] [%5d] [%-5d] [%05d] [%+d] [% d] [%.3d] [%8.3d] [%-8.3d]\n", i, i, i, i, i, i, i, i, i, i); \
    PRINT("u [%u] [%5u] [%-5u] [%05u] [%.6u] [%12.6u]\n", i, i, i, i, i, i);                                 \
    PRINT("x [%x] [%X] [%#x] [%#X] [%08x] [%#010x] [%.5x] [%#-12x]\n", i, i, i, i, i, i, i, i);              \
    PRINT("o [%o] [%#o] [%08o] [%.4o] [%-8o]\n", i, i, i, i, i);                                             \
    PRINT("c [%c] [%3c] [%-3c]\n", 'a' + (i & 15), 'b', 'c');                                                \
    PRINT("hh [%hhd] [%hhu] [%hhx] h [%hd] [%hu] [%hx]\n", i, i, i, i, i, i);                                \
    PRINT("ll [%lld] [%llu] [%llx] l [%ld] [%lu] [%lx]\n", l, l, l, l, l, l);                                \
    PRINT("z [%zu] j [%jd] t [%td] ll [%+20lld] [%-20lld] [%020lld]\n", (size_t)l, l, l, l, l, l);           \
    PRINT("f [%f] [%.0f] [%.1f] [%#.0f] [%10.2f] [%-10.2f] [%010.2f] [%+f] [% f] [%F]\n", d, d, d, d, d, d, d, d, d, d); \
    PRINT("e [%e] [%.0e] [%.3e] [%#.0e] [%14.2e] [%-14.2e] [%014.2e] [%E]\n", d, d, d, d, d, d, d, d);       \
    PRINT("g [%g] [%.0g] [%.3g] [%#g] [%#.3g] [%12g] [%-12g] [%012g] [%G] [%.12g]\n", d, d, d, d, d, d, d, d, d, d); \
    PRINT("a [%a] [%.0a] [%.3a] [%A] [%20a] [%-20a] [%+a]\n", d, d, d, d, d, d, d);                          \
    PRINT("* [%*d] [%-*d] [%.*f] [%*.*f] [%*d]\n", 7, i, 7, i, 2, d, 11, 3, d, -6, i);                       \
    PRINT("s [%s] [%6s] [%-6s] [%.2s] [%6.2s] [%s]\n", "word", "word", "word", "word", "word", "");          \
    PRINT("%% [%%] [%5d%%]\n", i);                                                                          \
    PRINT("32 %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n", \
          1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, \
          30, 31, i);                                                                                        \
    PRINT("no arguments\n");

__global__ void print(const int *ints, const long long *longs, const double *doubles, int n) {
    for (int at = 0; at < n; at++) {
        int i = ints[at];
        long long l = longs[at];
        double d = doubles[at];
        FORMATS(printf)
    }
}

// How many arguments were printed.
__global__ void count(int *counts) {
    counts[0] = printf("%d %s %f\n", 1, "two", 3.0);
    counts[1] = printf("nothing\n");
}

// Far more than the buffer that a program can ask for.
__global__ void much() {
    printf("block %4d thread %4d of a long line, so that all of them take more room\n", blockIdx.x, threadIdx.x);
}

static std::string expected;

static void host(const char *format, ...) {
    char line[8192];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    expected += line;
}

// What `run` and the device print.
template <typename Run>
static std::string printed(Run run) {
    std::fflush(stdout);
    FILE *file = std::tmpfile();
    int terminal = dup(1);
    dup2(fileno(file), 1);
    run();
    CHECK(cudaDeviceSynchronize());
    std::fflush(stdout);
    dup2(terminal, 1);
    close(terminal);
    std::string text;
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;) text += (char)c;
    std::fclose(file);
    return text;
}

int main() {
    double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> doubles = {0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 3.5, 123456.789, 1e-5, 9.9999e-5, 9999999.5, 1e15, 1e16,
                                   1.7976931348623157e308, 2.2250738585072014e-308, 5e-324, -3.25e-310, infinity, -infinity,
                                   nan, 0.5, 1e100, 1234567.0, 0.00012345};
    int n = doubles.size();
    std::vector<int> ints;
    std::vector<long long> longs;
    Random random = {12};
    for (int at = 0; at < n; at++) {
        int corners[] = {0, 1, -1, 7, -128, 255, 32768, 65535, 2147483647, -2147483647 - 1};
        ints.push_back(at < 10 ? corners[at] : (int)(random(1 << 16) << 16 | random(1 << 16)));
        longs.push_back(at == 9 ? std::numeric_limits<long long>::min() : (long long)ints[at] * (at < 5 ? 1 : 1000000007ll));
    }
    int *device_ints, *counts, host_counts[2];
    long long *device_longs;
    double *device_doubles;
    CHECK(cudaMalloc(&device_ints, n * sizeof(int)));
    CHECK(cudaMalloc(&counts, 2 * sizeof(int)));
    CHECK(cudaMalloc(&device_longs, n * sizeof(long long)));
    CHECK(cudaMalloc(&device_doubles, n * sizeof(double)));
    CHECK(cudaMemcpy(device_ints, ints.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_longs, longs.data(), n * sizeof(long long), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_doubles, doubles.data(), n * sizeof(double), cudaMemcpyHostToDevice));

    size_t size;
    CHECK(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
    bool right = size >= 1 << 20;
    CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 18));
    CHECK(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
    right = right && size >= 1 << 18;

    for (int at = 0; at < n; at++) {
        int i = ints[at];
        long long l = longs[at];
        double d = doubles[at];
        FORMATS(host)
    }
    std::string text = printed([&] { print<<<1, 1>>>(device_ints, device_longs, device_doubles, n); });
    if (text != expected) {
        size_t at = 0, line = 0;
        while (at < text.size() && text[at] == expected[at]) line = text[at++] == '\n' ? at : line;
        std::printf("device: %s\nhost:   %s\n", text.substr(line, text.find('\n', at) - line).c_str(),
                    expected.substr(line, expected.find('\n', at) - line).c_str());
        right = false;
    }

    text = printed([&] { count<<<1, 1>>>(counts); });
    CHECK(cudaMemcpy(host_counts, counts, sizeof host_counts, cudaMemcpyDeviceToHost));
    right = right && text == "1 two 3.000000\nnothing\n" && host_counts[0] == 3 && host_counts[1] == 0;

    // A GPU keeps what was printed last.
    text = printed([&] { much<<<64, 128>>>(); });
    size_t lines = 0;
    for (char c : text) lines += c == '\n';
    std::printf("%zu of %d lines\n", lines, 64 * 128);
    right = right && lines > 0 && text.size() % lines == 0;
    return verdict(right);
}
