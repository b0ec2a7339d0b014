//! libcuda.so.1 over the simulated device.
