//! Puts the race checks into a PTX module, and takes them out again.
