//! All tests of this folder in one program, as linking a program takes longer than most tests run.

mod audit;
mod channel;
mod choice;
mod command;
mod common;
mod ends;
mod explain;
mod failures;
mod fingerprints;
mod host_lines;
mod kernel;
mod known;
mod live;
mod models;
mod output;
mod outside;
mod place;
mod progress;
mod refuted;
mod replay;
mod settings;
mod starts;
mod streams;
mod stuck;
mod threads;
mod verify;
