//! The embedded SIMT device: runs PTX and has never heard of races.
