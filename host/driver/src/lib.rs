//! The only door to a CUDA driver, real or simulated; memory and file formats underneath.
