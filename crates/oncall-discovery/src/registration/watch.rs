//! Streams of the distribution tier: who showed which token, and what it may follow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::request::may_read;
use crate::auth::{AuthError, Claims, Gate, Role, Signature, Token, Verifier};
use crate::distrib::WatchPolicy;
use crate::types::{Cell, Peer, Time};

/// Checked tokens by peer. A stream is opened with the proof that [`WatchGrants::grant`] returned for the token;
/// nobody without one gets in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchGrants {
    grants: BTreeMap<Peer, (u64, Claims)>,
}

impl WatchGrants {
    /// Takes a token that a peer shows. The role must be the peer's own.
    pub fn grant<V: Verifier>(
        &mut self,
        now: Time,
        peer: Peer,
        token: &Token,
        gate: &Gate<V>,
    ) -> Result<u64, AuthError> {
        let claims = gate.check(now, token)?;
        let own = match (&claims.role, peer) {
            (Role::Proxy { proxy, .. }, Peer::Proxy(peer)) => *proxy == peer,
            (Role::Relay { region, relay }, Peer::Relay(home, peer)) => {
                *region == home && *relay == peer
            }
            _ => false,
        };
        if !own {
            return Err(AuthError::Forbidden("open a stream as somebody else"));
        }
        let proof = match token.signature {
            Signature::Symbolic(word) => word,
            Signature::Ed25519([half, _]) => oncall_core::digest::fnv1a(&half),
        };
        self.grants.insert(peer, (proof, claims.clone()));
        Ok(proof)
    }

    /// Takes back what has expired or is revoked by now. The caller closes the streams of these peers.
    pub fn review<V: Verifier>(&mut self, now: Time, gate: &mut Gate<V>) -> Vec<Peer> {
        let revoked = gate.revocations();
        let over = |claims: &Claims| {
            now >= claims.expires || revoked.covers(claims.subject, claims.issued)
        };
        let gone: Vec<Peer> = self
            .grants
            .iter()
            .filter(|(_, (_, claims))| over(claims))
            .map(|(peer, _)| *peer)
            .collect();
        for peer in &gone {
            self.grants.remove(peer);
        }
        gone
    }
}

impl WatchPolicy for WatchGrants {
    fn may_connect(&self, peer: Peer, proof: u64) -> bool {
        self.grants.get(&peer).is_some_and(|(known, _)| *known == proof)
    }

    fn may_watch(&self, peer: Peer, cell: Cell) -> bool {
        let Some((_, claims)) = self.grants.get(&peer) else { return false };
        may_read(&claims.role, cell)
    }
}
