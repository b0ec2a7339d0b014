//! All tests of this folder, as one program: linking one takes longer than most of them run.

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
mod stuck;
mod threads;
mod verify;
