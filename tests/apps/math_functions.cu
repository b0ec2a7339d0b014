// The mathematical functions of CUDA against the host's in a wider type, within the bounds that NVIDIA states.
// Source of the bounds: CUDA C++ Programming Guide, "Mathematical Functions", in units of the last place.
//@ variants: clean
//@ expect: no-race
//@ nvcc: -std=c++17
#include "app.h"

#include <cmath>
#include <limits>

const int n = 768;

// A function of one number: the same name for both types on the device, a wider one on the host.
#define ONE(NAME, FLOAT, DOUBLE, LOW, HIGH, HOST)                                          \
    struct NAME##_function {                                                               \
        static constexpr const char *name = #NAME;                                         \
        static constexpr double bound[2] = {FLOAT, DOUBLE}, low = LOW, high = HIGH;        \
        static constexpr int arguments = 1;                                                \
        static __device__ float device(float x, float) { return NAME##f(x); }              \
        static __device__ double device(double x, double) { return NAME(x); }              \
        static long double host(long double x, long double) { return HOST; }               \
    };
#define TWO(NAME, FLOAT, DOUBLE, LOW, HIGH, HOST)                                          \
    struct NAME##_function {                                                               \
        static constexpr const char *name = #NAME;                                         \
        static constexpr double bound[2] = {FLOAT, DOUBLE}, low = LOW, high = HIGH;        \
        static constexpr int arguments = 2;                                                \
        static __device__ float device(float x, float y) { return NAME##f(x, y); }         \
        static __device__ double device(double x, double y) { return NAME(x, y); }         \
        static long double host(long double x, long double y) { return HOST; }             \
    };

const long double pi = 3.14159265358979323846264338327950288L;

// The host's sine of a multiple of pi, exact at multiples of a half.
static long double sine_of_pi(long double x) {
    long double part = std::remainder(x, 2.0L);
    if (std::fabs(part) > 0.5L) part = std::copysign(1.0L, part) - part;
    return part == 0 ? std::copysign(0.0L, x) : std::sin(pi * part);
}
static long double cosine_of_pi(long double x) {
    long double part = std::fabs(std::remainder(x, 2.0L));
    return part == 0.5L ? 0 : part < 0.25L ? std::cos(pi * part) : std::sin(pi * (0.5L - part));
}

// The inverse of erfc by Newton's method; in logarithms, so that small values keep their digits.
static long double inverse_of_erfc(long double y) {
    if (!(y >= 0 && y <= 2)) return NAN;
    if (y == 0 || y == 2) return y == 0 ? INFINITY : -INFINITY;
    if (y > 1.5L) return -inverse_of_erfc(2 - y);
    long double x = y < 0.1L ? std::sqrt(-std::log(y)) : 1 - y;
    for (int step = 0; step < 60; step++) {
        long double value = std::erfc(x), slope = -2 / std::sqrt(pi) * std::exp(-x * x);
        x -= std::log(value / y) * value / slope;
    }
    return x;
}
static long double inverse_of_erf(long double y) {
    if (!(std::fabs(y) <= 1)) return NAN;
    if (std::fabs(y) > 0.5L) return std::copysign(inverse_of_erfc(1 - std::fabs(y)), y);
    long double x = y;
    for (int step = 0; step < 30; step++) x -= (std::erf(x) - y) * std::sqrt(pi) / 2 * std::exp(x * x);
    return y == 0 ? y : x;
}

// The host's own throws for what is not finite, and for numbers below zero.
static long double modified_bessel(int order, long double x) {
    long double size = std::isfinite(x) ? std::cyl_bessel_i((long double)order, std::fabs(x)) : std::fabs(x);
    return order == 1 ? std::copysign(size, x) : size;
}

ONE(rsqrt, 2, 1, 0, 1e6, 1 / std::sqrt(x))
ONE(sqrt, 0, 0, 0, 1e6, std::sqrt(x))
ONE(cbrt, 1, 1, -1e6, 1e6, std::cbrt(x))
ONE(rcbrt, 1, 1, -1e6, 1e6, 1 / std::cbrt(x))
ONE(exp, 2, 1, -80, 80, std::exp(x))
ONE(exp2, 2, 1, -120, 120, std::exp2(x))
ONE(exp10, 2, 1, -37, 37, std::pow(10.0L, x))
ONE(expm1, 1, 1, -20, 20, std::expm1(x))
ONE(log, 1, 1, 0, 1e6, std::log(x))
ONE(log2, 1, 1, 0, 1e6, std::log2(x))
ONE(log10, 2, 1, 0, 1e6, std::log10(x))
ONE(log1p, 1, 1, -1, 1e3, std::log1p(x))
ONE(sin, 2, 2, -1e5, 1e5, std::sin(x))
ONE(cos, 2, 2, -1e5, 1e5, std::cos(x))
ONE(tan, 4, 2, -1e5, 1e5, std::tan(x))
ONE(sinpi, 1, 2, -1e3, 1e3, sine_of_pi(x))
ONE(cospi, 1, 2, -1e3, 1e3, cosine_of_pi(x))
ONE(asin, 2, 2, -1, 1, std::asin(x))
ONE(acos, 2, 2, -1, 1, std::acos(x))
ONE(atan, 2, 2, -100, 100, std::atan(x))
ONE(sinh, 3, 2, -80, 80, std::sinh(x))
ONE(cosh, 2, 1, -80, 80, std::cosh(x))
ONE(tanh, 2, 1, -10, 10, std::tanh(x))
ONE(asinh, 3, 3, -1e3, 1e3, std::asinh(x))
ONE(acosh, 4, 3, 1, 1e3, std::acosh(x))
ONE(atanh, 3, 2, -1, 1, std::atanh(x))
ONE(erf, 2, 2, -5, 5, std::erf(x))
ONE(erfc, 4, 5, -5, 9, std::erfc(x))
ONE(erfcx, 4, 4, -3, 6, x == INFINITY ? 0 : std::exp(x * x) * std::erfc(x))
ONE(erfinv, 2, 5, -1, 1, inverse_of_erf(x))
ONE(erfcinv, 4, 6, 0.001, 1.999, inverse_of_erfc(x))
ONE(normcdf, 5, 5, -6, 6, std::erfc(-x / std::sqrt(2.0L)) / 2)
ONE(normcdfinv, 5, 8, 0.001, 0.999, 0 - std::sqrt(2.0L) * inverse_of_erfc(2 * x))
ONE(lgamma, 6, 4, 0, 100, std::lgamma(x))
ONE(tgamma, 5, 10, 0, 30, std::tgamma(x))
ONE(j0, 9, 7, -2.2, 2.2, j0l(x))
ONE(j1, 9, 7, -3, 3, j1l(x))
ONE(y0, 9, 7, 1.2, 3, y0l(x))
ONE(y1, 9, 7, 0.1, 2, y1l(x))
ONE(cyl_bessel_i0, 6, 6, 0, 20, modified_bessel(0, x))
ONE(cyl_bessel_i1, 6, 6, 0, 20, modified_bessel(1, x))
ONE(logb, 0, 0, -1e6, 1e6, std::logb(x))
ONE(trunc, 0, 0, -1e4, 1e4, std::trunc(x))
ONE(round, 0, 0, -1e4, 1e4, std::round(x))
ONE(rint, 0, 0, -1e4, 1e4, std::rint(x))
ONE(nearbyint, 0, 0, -1e4, 1e4, std::nearbyint(x))
ONE(ceil, 0, 0, -1e4, 1e4, std::ceil(x))
ONE(floor, 0, 0, -1e4, 1e4, std::floor(x))
ONE(fabs, 0, 0, -1e4, 1e4, std::fabs(x))
TWO(atan2, 3, 2, -100, 100, std::atan2(x, y))
TWO(pow, 4, 2, 0, 20, std::pow(x, y))
TWO(hypot, 3, 2, -1e4, 1e4, std::hypot(x, y))
TWO(rhypot, 2, 1, -1e4, 1e4, 1 / std::hypot(x, y))
TWO(fmod, 0, 0, -1e4, 1e4, std::fmod(x, y))
TWO(remainder, 0, 0, -1e4, 1e4, std::remainder(x, y))
TWO(fdim, 0, 0, -1e4, 1e4, std::fdim(x, y))
// Zeros have signs there.
TWO(fmax, 0, 0, -1e4, 1e4, x == y ? (std::signbit(x) ? y : x) : std::fmax(x, y))
TWO(fmin, 0, 0, -1e4, 1e4, x == y ? (std::signbit(x) ? x : y) : std::fmin(x, y))
TWO(copysign, 0, 0, -1e4, 1e4, std::copysign(x, y))

template <class Function, class Number>
__global__ void apply(const Number *x, const Number *y, Number *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = Function::device(x[i], y[i]);
}

// How far a result is from the true value, in units of the last place of the true value.
template <class Number>
static double distance(Number result, long double truth) {
    Number rounded = Number(truth);
    if (std::isnan(truth) || std::isnan(result)) return std::isnan(truth) && std::isnan(result) ? 0 : INFINITY;
    if (result == rounded) return std::signbit(result) == std::signbit(rounded) ? 0 : INFINITY;
    if (std::isinf(rounded) || std::isinf(result)) return INFINITY;
    int exponent = std::ilogb(truth), least = std::numeric_limits<Number>::min_exponent - 1;
    int digits = std::numeric_limits<Number>::digits;
    long double unit = std::ldexp(1.0L, (exponent < least ? least : exponent) - digits + 1);
    return double(std::fabs(result - truth) / unit);
}

template <class Function, class Number>
static bool check(Number *x, Number *y, Number *out, double bound) {
    const Number special[] = {0, Number(-0.0), 1, -1, INFINITY, -INFINITY, NAN, Number(0.5), 2,
                              std::numeric_limits<Number>::denorm_min()};
    const int specials = sizeof special / sizeof *special;
    Random random{7};
    auto between = [&] { return Function::low + (Function::high - Function::low) * random(1 << 24) / (1 << 24); };
    // Special values first, each with each; then numbers of the range, and small ones.
    for (int i = 0; i < n; i++) {
        bool pairs = i < specials * specials;
        x[i] = pairs ? special[i % specials] : i % 4 == 0 ? Number(between() / (1 << random(20))) : Number(between());
        y[i] = pairs ? special[i / specials] : Number(between());
    }
    apply<Function><<<(n + 255) / 256, 256>>>(x, y, out);
    CHECK(cudaDeviceSynchronize());
    double worst = 0;
    int at = 0;
    for (int i = 0; i < n; i++) {
        // Outside of a function's range only special values are held to it.
        bool inside = x[i] >= Function::low && x[i] <= Function::high;
        if (Function::arguments == 1 && i < specials * specials && !inside && std::isfinite(x[i])) continue;
        double away = distance(out[i], Function::host(x[i], y[i]));
        if (away > worst) worst = away, at = i;
    }
    // The true value is between two numbers: half a unit is the rounding itself.
    if (worst <= bound + 0.5) return true;
    std::printf("%s: %s(%.17g, %.17g) is %.17g, %.17Lg expected: %.3g units\n", sizeof(Number) == 4 ? "float" : "double",
                Function::name, double(x[at]), double(y[at]), double(out[at]), Function::host(x[at], y[at]), worst);
    return false;
}

template <class... Functions>
static bool check_all(void *x, void *y, void *out) {
    bool right = true;
    ((right &= check<Functions>((float *)x, (float *)y, (float *)out, Functions::bound[0])), ...);
    ((right &= check<Functions>((double *)x, (double *)y, (double *)out, Functions::bound[1])), ...);
    return right;
}

int main() {
    void *x, *y, *out;
    for (void **place : {&x, &y, &out}) CHECK(cudaMallocManaged(place, n * sizeof(double)));
#define F(NAME) NAME##_function
    bool right = check_all<F(rsqrt), F(sqrt), F(cbrt), F(rcbrt), F(exp), F(exp2), F(exp10), F(expm1), F(log), F(log2),
                           F(log10), F(log1p), F(sin), F(cos), F(tan), F(sinpi), F(cospi), F(asin), F(acos), F(atan)>(
        x, y, out);
    right &= check_all<F(sinh), F(cosh), F(tanh), F(asinh), F(acosh), F(atanh), F(erf), F(erfc), F(erfcx), F(erfinv),
                       F(erfcinv), F(normcdf), F(normcdfinv), F(lgamma), F(tgamma), F(j0), F(j1), F(y0), F(y1),
                       F(cyl_bessel_i0), F(cyl_bessel_i1)>(x, y, out);
    right &= check_all<F(logb), F(trunc), F(round), F(rint), F(nearbyint), F(ceil), F(floor), F(fabs), F(atan2), F(pow),
                       F(hypot), F(rhypot), F(fmod), F(remainder), F(fdim), F(fmax), F(fmin), F(copysign)>(x, y, out);
    return verdict(right);
}
