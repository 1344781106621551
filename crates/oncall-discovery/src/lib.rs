//! The service-discovery control plane and its proxies as components without I/O, clock or random numbers.
