//! Discrete-event simulation of the discovery control plane: network, faults, traffic in expectation, invariants.
