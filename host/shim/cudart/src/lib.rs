//! libcudart.so.12 and .13 over the driver API.
