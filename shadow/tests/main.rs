//! All tests of this folder in one program, as linking a program takes longer than most tests run.

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
