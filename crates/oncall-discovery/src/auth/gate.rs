//! Checking tokens, and the list of revoked identities.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::token::{Audience, Claims, Subject, Token, Verifier};
use crate::mutants::{Mutant, Mutants};
use crate::types::{Span, Time};

/// Why somebody was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Not signed by the authority, or altered.
    #[error("token.signature: not the authority's")]
    BadSignature,
    /// Its time has not come.
    #[error("token.issued: {issued:?}, which lies ahead of {now:?}")]
    NotYet {
        /// From when on it is valid.
        issued: Time,
        /// What time it is.
        now: Time,
    },
    /// Its time is over.
    #[error("token.expires: {expires:?}; it is {now:?}")]
    Expired {
        /// Until when it was valid.
        expires: Time,
        /// What time it is.
        now: Time,
    },
    /// It lives longer than the gate lets any token live.
    #[error("token.expires: {lifetime:?} after it was issued; expected at most {max:?}")]
    TooLong {
        /// How long it lives.
        lifetime: Span,
        /// How long it may.
        max: Span,
    },
    /// It is for somebody else.
    #[error("token.audience: {found:?}; expected {expected:?}")]
    Audience {
        /// Whom it is for.
        found: Audience,
        /// Who looked at it.
        expected: Audience,
    },
    /// The identity is revoked.
    #[error("token.subject: {0:?} is revoked")]
    Revoked(Subject),
    /// The role does not reach so far.
    #[error("token.role: may not {0}")]
    Forbidden(&'static str),
}

/// Revoked identities with the time of revocation. Independent of the catalog and its distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Revocations {
    since: BTreeMap<Subject, Time>,
    #[serde(skip)]
    mutants: Mutants,
}

impl Revocations {
    /// The same with safeguards taken out, for tests.
    #[must_use]
    pub fn with_mutants(self, mutants: Mutants) -> Self {
        Self { mutants, ..self }
    }

    /// Refuses a subject's tokens issued until `at`, and its connections until it shows a later one.
    pub fn revoke(&mut self, subject: Subject, at: Time) {
        let since = self.since.entry(subject).or_insert(at);
        *since = at.max(*since);
    }

    /// Whether a token of a subject is revoked.
    pub fn covers(&self, subject: Subject, issued: Time) -> bool {
        let revoked = self.since.get(&subject).is_some_and(|&since| issued <= since);
        revoked && !self.mutants.has(Mutant::RevocationIgnored)
    }

    /// Forgets what no unexpired token can need: revocations older than the longest life of a token.
    pub fn prune(&mut self, now: Time, lifetime_max: Span) {
        self.since.retain(|_, since| now < since.after(lifetime_max));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.since.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.since.is_empty()
    }
}

/// Checks tokens for one audience. Everybody who accepts tokens has one: catalogs, relays, proxies, callees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate<V> {
    verifier: V,
    audience: Audience,
    lifetime_max: Span,
    revoked: Revocations,
}

impl<V: Verifier> Gate<V> {
    /// A gate for an audience that accepts tokens that live at most `lifetime_max`.
    pub fn new(verifier: V, audience: Audience, lifetime_max: Span) -> Self {
        Self { verifier, audience, lifetime_max, revoked: Revocations::default() }
    }

    /// The same with safeguards taken out, for tests.
    #[must_use]
    pub fn with_mutants(mut self, mutants: Mutants) -> Self {
        self.revoked.mutants = mutants;
        self
    }

    /// The revoked identities.
    pub fn revocations(&mut self) -> &mut Revocations {
        &mut self.revoked
    }

    /// The claims of a token, if it is genuine, meant for this gate, in time, and not revoked.
    pub fn check<'a>(&self, now: Time, token: &'a Token) -> Result<&'a Claims, AuthError> {
        let claims = &token.claims;
        if !self.verifier.verify(&claims.bytes(), &token.signature) {
            return Err(AuthError::BadSignature);
        }
        if claims.audience != self.audience {
            return Err(AuthError::Audience { found: claims.audience, expected: self.audience });
        }
        if now < claims.issued {
            return Err(AuthError::NotYet { issued: claims.issued, now });
        }
        if now >= claims.expires {
            return Err(AuthError::Expired { expires: claims.expires, now });
        }
        let lifetime = claims.expires.since(claims.issued);
        if lifetime > self.lifetime_max {
            return Err(AuthError::TooLong { lifetime, max: self.lifetime_max });
        }
        if self.revoked.covers(claims.subject, claims.issued) {
            return Err(AuthError::Revoked(claims.subject));
        }
        Ok(claims)
    }

    /// At connection time: whether the peer that a discovery view named may be talked to, given when the token that
    /// it shows was issued. The view has no say in it (R126, R182).
    pub fn admits_peer(&self, subject: Subject, issued: Time) -> Result<(), AuthError> {
        if self.revoked.covers(subject, issued) {
            return Err(AuthError::Revoked(subject));
        }
        Ok(())
    }
}
