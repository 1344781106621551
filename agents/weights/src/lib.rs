//! Trained policies: a reader of weights and a forward pass without libtorch.
