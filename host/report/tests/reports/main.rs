//! Reports of constructed logs: what is merged, what is said, and that the JSON keeps to its schema.
//!
//! No race was found to make these logs; they are the reader's test, not the checker's.

mod formats;
mod made;
mod merge;
mod races;
mod summary;
