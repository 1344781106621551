//! Tests of the whole: goldens, determinism, properties, tidiness.
