//! Names of things. All are plain numbers, dense from zero, so that tables can be indexed by them.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub $number);

        impl $name {
            /// The place in a table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A logical service: the place of its [`ServiceKey`] in the [`Directory`].
    ServiceId(u16)
}
id! {
    /// A region.
    RegionId(u8)
}
id! {
    /// A zone, counted within its region. Two zones of different regions may carry one number.
    ZoneId(u8)
}
id! {
    /// A machine, counted over the fleet. Its agent and its proxy carry the same number.
    NodeId(u16)
}
id! {
    /// A node proxy: the proxy on the node of the same number.
    ProxyId(u16)
}
id! {
    /// A consistency group of one region; services are spread over them by key.
    ShardId(u8)
}
id! {
    /// A regional, off-node prober, counted within its region.
    ProberId(u8)
}
id! {
    /// A relay of the distribution tier, counted within its region.
    RelayId(u16)
}
id! {
    /// The stable id of an instance. It belongs to one cell for ever: another service needs another id.
    InstanceId(u32)
}
id! {
    /// A cell's revision. Every accepted change in the cell raises it by one; restarts with an [`Incarnation`].
    Revision(u32)
}
id! {
    /// Which life of a shard's history revisions belong to. Rises when a shard is restored from a copy.
    Incarnation(u32)
}
id! {
    /// A consensus term.
    Term(u64)
}

impl Revision {
    /// The next one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Incarnation {
    /// The next one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One service in one region: the unit of revisions, deltas, snapshots and subscriptions.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Cell {
    /// The service.
    pub service: ServiceId,
    /// The region that alone may write it (I9).
    pub region: RegionId,
}

/// A zone of the fleet.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Place {
    /// The region.
    pub region: RegionId,
    /// The zone within it.
    pub zone: ZoneId,
}

/// Which life of an instance: when its process started, and how often that process has registered (D10).
///
/// Ordered by start, then sequence. `start` rises with real time (milliseconds since the world began will
/// do): a replacement always has a larger one, which is what the fences compare.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Generation {
    /// Start of the process.
    pub start: u32,
    /// Registrations of that process before this one.
    pub sequence: u32,
}

impl Generation {
    /// The first registration of a process.
    pub const fn first(start: u32) -> Self {
        Self { start, sequence: 0 }
    }

    /// The same process, registering again.
    #[must_use]
    pub const fn again(self) -> Self {
        Self { start: self.start, sequence: self.sequence + 1 }
    }
}

/// Where an instance listens.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Address {
    /// IPv4 address, as a number.
    pub ip: u32,
    /// Port.
    pub port: u16,
}

/// The catalog key (R44): environments and protocols of one service do not collide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServiceKey {
    /// Environment or tenant, such as `prod`.
    pub namespace: String,
    /// Service name, such as `checkout`.
    pub service: String,
    /// Port name, such as `grpc`.
    pub port: String,
}

impl std::fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}:{}", self.namespace, self.service, self.port)
    }
}

/// The list of services. Fixed for a world; every component takes it by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    keys: Vec<ServiceKey>,
    shards: Vec<ShardId>,
    shard_count: u8,
}

/// Why a [`Directory`] cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// Two services share a key.
    #[error("services: `{0}` is there twice; every (namespace, service, port) must be unique")]
    Twice(ServiceKey),
    /// Part of a key is empty.
    #[error("services: part `{field}` of `{key}` is empty; expected a name")]
    Empty {
        /// Which part.
        field: &'static str,
        /// The key.
        key: ServiceKey,
    },
    /// More services than ids.
    #[error("services: {0} of them; expected at most 65535")]
    TooMany(usize),
    /// No shards.
    #[error("shard_count: 0; expected at least 1")]
    NoShards,
}

impl Directory {
    /// Numbers the services in the given order and spreads them over `shard_count` consistency groups by key.
    pub fn new(keys: Vec<ServiceKey>, shard_count: u8) -> Result<Self, DirectoryError> {
        if shard_count == 0 {
            return Err(DirectoryError::NoShards);
        }
        if keys.len() > usize::from(u16::MAX) {
            return Err(DirectoryError::TooMany(keys.len()));
        }
        for key in &keys {
            let parts =
                [("namespace", &key.namespace), ("service", &key.service), ("port", &key.port)];
            if let Some((field, _)) = parts.into_iter().find(|(_, part)| part.is_empty()) {
                return Err(DirectoryError::Empty { field, key: key.clone() });
            }
        }
        let mut sorted: Vec<&ServiceKey> = keys.iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(DirectoryError::Twice(pair[0].clone()));
        }
        let shards = keys.iter().map(|key| shard_of(key, shard_count)).collect();
        Ok(Self { keys, shards, shard_count })
    }

    /// Number of services.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no service.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Consistency groups per region.
    pub fn shard_count(&self) -> u8 {
        self.shard_count
    }

    /// Key of a service.
    pub fn key(&self, service: ServiceId) -> Option<&ServiceKey> {
        self.keys.get(service.index())
    }

    /// The consistency group of a service (R72); the same in every region.
    pub fn shard(&self, service: ServiceId) -> Option<ShardId> {
        self.shards.get(service.index()).copied()
    }

    /// The service of a key.
    pub fn find(&self, key: &ServiceKey) -> Option<ServiceId> {
        self.keys.iter().position(|other| other == key).map(|at| ServiceId(at as u16))
    }
}

/// Hash of the whole key: a rename moves a service, nothing else does.
fn shard_of(key: &ServiceKey, shard_count: u8) -> ShardId {
    // The lengths keep ("ab", "c") and ("a", "bc") apart.
    let parts = [&key.namespace, &key.service, &key.port];
    let hash = parts.iter().fold(0, |hash, part| {
        let hash = oncall_core::streams::mix(hash, part.len() as u64);
        oncall_core::streams::mix(hash, oncall_core::digest::fnv1a(part.as_bytes()))
    });
    ShardId((hash % u64::from(shard_count)) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, service: &str, port: &str) -> ServiceKey {
        let [namespace, service, port] = [namespace, service, port].map(str::to_owned);
        ServiceKey { namespace, service, port }
    }

    #[test]
    fn keys_are_unique_and_spread_by_themselves() {
        let keys = vec![
            key("prod", "cart", "http"),
            key("prod", "cart", "grpc"),
            key("test", "cart", "http"),
            key("prod", "carth", "ttp"),
        ];
        let directory = Directory::new(keys.clone(), 8).unwrap();
        for (n, key) in keys.iter().enumerate() {
            assert_eq!(directory.find(key), Some(ServiceId(n as u16)));
            assert_eq!(directory.key(ServiceId(n as u16)), Some(key));
        }
        // A service stays in its shard whatever else there is.
        let alone = Directory::new(vec![keys[2].clone()], 8).unwrap();
        assert_eq!(alone.shard(ServiceId(0)), directory.shard(ServiceId(2)));
        assert_eq!(directory.shard(ServiceId(4)), None);
    }

    #[test]
    fn bad_directories_are_refused_by_name() {
        let error = |keys: Vec<ServiceKey>, shards| Directory::new(keys, shards).unwrap_err();
        let twice = error(vec![key("a", "b", "c"), key("d", "e", "f"), key("a", "b", "c")], 1);
        assert_eq!(twice, DirectoryError::Twice(key("a", "b", "c")));
        let empty = error(vec![key("a", "b", "")], 1).to_string();
        assert_eq!(empty, "services: part `port` of `a/b:` is empty; expected a name");
        assert_eq!(error(vec![], 0), DirectoryError::NoShards);
    }

    #[test]
    fn generations_are_ordered_by_start_first() {
        let first = Generation::first(5);
        assert!(first < first.again() && first.again() < Generation::first(6));
    }
}
