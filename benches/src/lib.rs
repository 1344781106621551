//! Benchmarks as data, with expected digests.
