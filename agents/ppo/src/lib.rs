//! PPO with tch: the only crate that links libtorch.
