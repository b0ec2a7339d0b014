//! All tests of this folder, as one program: linking one takes longer than most of them run.

mod copies;
mod counted;
mod crowds;
mod enumeration;
mod generations;
mod hb;
mod hb_forgets;
mod hb_made;
mod launched;
mod lock_order;
mod long;
mod oracle;
mod phased;
mod streams;
mod strong;
mod traces;
