//! Tests of the distribution tier and the proxies together: a small world on virtual time with real components.

mod checks;
mod source;
mod world;

mod faults;
mod machine;
mod model;
mod pieces;
mod requests;
mod scenarios;
