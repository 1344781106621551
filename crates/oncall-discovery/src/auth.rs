//! Identities: who may write, watch and serve (R124 to R126), apart from the catalog and failing closed (R41).
//!
//! A token binds a role to an audience and a time, and an authority signs it. What a role may do follows from the
//! role alone: labels never grant anything. Revocation is a list of its own that does not travel with discovery:
//! whoever is on it is refused at registration, at a watch and at connection time, also where a stale view still
//! names it (I21).

mod gate;
mod token;

#[cfg(test)]
mod tests;

pub use gate::{AuthError, Gate, Revocations};
pub use token::{
    Audience, Claims, Ed25519Issuer, Ed25519Verifier, Issuer, Role, Signature, Subject,
    SymbolicAuthority, Token, Verifier, VerifyingKeyError,
};
