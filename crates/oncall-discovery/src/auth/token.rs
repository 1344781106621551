//! Tokens and their signatures.

use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use oncall_core::digest::fnv1a;
use oncall_core::streams::mix;
use serde::{Deserialize, Serialize};

use crate::types::{
    Address, Cell, InstanceId, NodeId, Place, ProberId, ProxyId, RegionId, RelayId, ServiceId, Time,
};

/// A workload identity, the same over all tokens of one workload, agent or proxy. What gets revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subject(pub u64);

/// What somebody is, and with it all that it may do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The orchestrator's controller of a region: the life cycle of that region's instances.
    Controller {
        /// Its region.
        region: RegionId,
    },
    /// A node's agent: the instances on its node.
    Agent {
        /// Its node.
        node: NodeId,
        /// Where the node stands.
        place: Place,
        /// The node's address: its instances listen there and nowhere else.
        ip: u32,
        /// The services that may run on it, sorted.
        services: Vec<ServiceId>,
    },
    /// A workload: its own record.
    Workload {
        /// Its service and region.
        cell: Cell,
        /// Its instance.
        instance: InstanceId,
        /// Where it listens: it may claim no other's address.
        address: Address,
    },
    /// A node proxy: watches of the services that its workloads call, sorted.
    Proxy {
        /// Which one.
        proxy: ProxyId,
        /// Where it stands.
        place: Place,
        /// What it may watch.
        services: Vec<ServiceId>,
    },
    /// A regional prober: results of probes.
    Prober {
        /// Its region.
        region: RegionId,
        /// Which one.
        prober: ProberId,
    },
    /// A relay: reads its region's catalog, and serves proxies.
    Relay {
        /// Its region.
        region: RegionId,
        /// Which one.
        relay: RelayId,
    },
}

/// Whom a token is for: another must not accept it, so a stolen one is of little use elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Audience {
    /// The catalog of a region.
    Catalog(RegionId),
    /// The relays of a region.
    Distribution(RegionId),
    /// The proxies of a region, to which a relay shows who it is (R125).
    Proxies(RegionId),
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claims {
    /// Who.
    pub subject: Subject,
    /// What it is.
    pub role: Role,
    /// For whom.
    pub audience: Audience,
    /// From when on.
    pub issued: Time,
    /// Until when, exclusive.
    pub expires: Time,
}

/// A signature of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Signature {
    /// Ed25519, its two halves.
    Ed25519([[u8; 32]; 2]),
    /// A keyed hash that only stands for a signature.
    Symbolic(u64),
}

/// A signed statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Token {
    /// What it says.
    pub claims: Claims,
    /// The authority's signature of it.
    pub signature: Signature,
}

/// Can sign.
pub trait Issuer {
    /// Signs bytes.
    fn sign(&self, message: &[u8]) -> Signature;

    /// Issues a token.
    fn issue(&self, claims: Claims) -> Token {
        let signature = self.sign(&claims.bytes());
        Token { claims, signature }
    }
}

/// Can tell whether a signature is the authority's.
pub trait Verifier {
    /// Whether the authority signed these bytes.
    fn verify(&self, message: &[u8], signature: &Signature) -> bool;
}

impl Claims {
    /// The bytes that are signed. Fixed widths and a length before the only list: no two claims share them.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"oncall-discovery token 1".to_vec();
        let mut put = |word: u64| bytes.extend_from_slice(&word.to_le_bytes());
        put(self.subject.0);
        let (kind, region) = match self.audience {
            Audience::Catalog(region) => (0, region),
            Audience::Distribution(region) => (1, region),
            Audience::Proxies(region) => (2, region),
        };
        put(kind << 8 | u64::from(region.0));
        put(self.issued.0);
        put(self.expires.0);
        let of = |place: &Place| u64::from(place.region.0) << 8 | u64::from(place.zone.0);
        let (kind, a, b, c) = match &self.role {
            Role::Controller { region } => (0, region.0.into(), 0, 0),
            Role::Agent { node, place, ip, .. } => (1, node.0.into(), of(place), (*ip).into()),
            Role::Workload { cell, instance, address } => {
                let cell = u64::from(cell.service.0) << 8 | u64::from(cell.region.0);
                let address = u64::from(address.ip) << 16 | u64::from(address.port);
                (2, cell, instance.0.into(), address)
            }
            Role::Proxy { proxy, place, .. } => (3, proxy.0.into(), of(place), 0),
            Role::Prober { region, prober } => (4, region.0.into(), prober.0.into(), 0),
            Role::Relay { region, relay } => (5, region.0.into(), relay.0.into(), 0),
        };
        [kind, a, b, c].into_iter().for_each(&mut put);
        if let Role::Proxy { services, .. } | Role::Agent { services, .. } = &self.role {
            put(services.len() as u64);
            for service in services {
                put(service.0.into());
            }
        }
        bytes
    }
}

/// Signs with a real key. The key is given: nothing here draws random numbers.
#[derive(Clone)]
pub struct Ed25519Issuer(SigningKey);

impl Ed25519Issuer {
    /// From the 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(secret))
    }

    /// The public half.
    pub fn verifier(&self) -> Ed25519Verifier {
        Ed25519Verifier(self.0.verifying_key())
    }
}

impl Issuer for Ed25519Issuer {
    fn sign(&self, message: &[u8]) -> Signature {
        let bytes = self.0.sign(message).to_bytes();
        let half = |from: usize| std::array::from_fn(|at| bytes[from + at]);
        Signature::Ed25519([half(0), half(32)])
    }
}

/// Checks real signatures, strictly: no small-order keys, no second encoding of one signature.
#[derive(Clone, Debug)]
pub struct Ed25519Verifier(VerifyingKey);

/// Why bytes are no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key: 32 bytes that are no point of the curve; expected an Ed25519 public key")]
pub struct VerifyingKeyError;

impl Ed25519Verifier {
    /// From the 32 public bytes.
    pub fn new(public: &[u8; 32]) -> Result<Self, VerifyingKeyError> {
        VerifyingKey::from_bytes(public).map(Self).map_err(|_| VerifyingKeyError)
    }
}

impl Verifier for Ed25519Verifier {
    fn verify(&self, message: &[u8], signature: &Signature) -> bool {
        let Signature::Ed25519([first, second]) = signature else { return false };
        let bytes = std::array::from_fn(|at| if at < 32 { first[at] } else { second[at - 32] });
        self.0.verify_strict(message, &ed25519_dalek::Signature::from_bytes(&bytes)).is_ok()
    }
}

/// Stands for the authority at full scale: a keyed hash, good against mistakes and worthless against an attacker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolicAuthority(pub u64);

impl Issuer for SymbolicAuthority {
    fn sign(&self, message: &[u8]) -> Signature {
        Signature::Symbolic(mix(self.0, fnv1a(message)))
    }
}

impl Verifier for SymbolicAuthority {
    fn verify(&self, message: &[u8], signature: &Signature) -> bool {
        self.sign(message) == *signature
    }
}
