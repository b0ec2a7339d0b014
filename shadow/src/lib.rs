//! The shadow cell and the race rule: pure, no_std, no unsafe.
