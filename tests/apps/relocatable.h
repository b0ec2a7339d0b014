// What the translation units of relocatable.cu share.
#pragma once

struct Shape {
    int side;
    __device__ Shape(int side) : side(side) {}
    __device__ virtual int area() const = 0;
};

struct Square : Shape {
    __device__ Square(int side) : Shape(side) {}
    __device__ int area() const override;
};

struct Line : Shape {
    __device__ Line(int side) : Shape(side) {}
    __device__ int area() const override;
};

// Compiled into each unit that uses it, and one of them is kept.
template <typename T> __device__ __noinline__ T larger(T a, T b) { return a > b ? a : b; }

__device__ void add_to(int *total, int value);
int other_step();
int table_of(int index);
