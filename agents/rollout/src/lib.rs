//! Rollout storage, advantages and normalisation on plain slices, no torch.
