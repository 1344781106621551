//! `AnyWorld`, `AnyVecEnv`: a new world is a variant here, and nothing else outside its own crate.

#[cfg(feature = "bench-worlds")]
use oncall_cartpole::CartPole;
use oncall_core::{Generator, Spec, World};
use oncall_discovery_env::DiscoveryWorld;
use oncall_fleet::{FleetLanes, FleetWorld};
use oncall_vec::{
    Actions, Columns, EpisodeStats, Options, OwnedColumns, ResetColumns, RowInfo, Seeds, Snapshot,
    StepSummary, VecEnv, VecError,
};
use std::sync::Arc;

/// A world of the list.
#[derive(Debug, Clone)]
pub enum AnyWorld {
    /// The fleet.
    Fleet(FleetWorld),
    /// Discovery.
    Discovery(DiscoveryWorld),
}

macro_rules! each {
    ($any:expr, $world:ident => $body:expr) => {
        match $any {
            AnyWorld::Fleet($world) => $body,
            AnyWorld::Discovery($world) => $body,
        }
    };
}

impl AnyWorld {
    /// What goes in and comes out.
    pub fn spec(&self) -> &Spec {
        each!(self, world => world.spec())
    }

    /// Hash of the parameters.
    pub fn params_hash(&self) -> u64 {
        each!(self, world => world.params_hash())
    }

    /// The generator of its episodes.
    pub fn generator(&self) -> Generator {
        each!(self, world => world.generator())
    }

    /// Replaces the drawn demand by exact rates; see [`World::pin_demand`].
    pub fn pin_demand(&mut self, requests_per_s: Option<Vec<f64>>) -> bool {
        each!(self, world => world.pin_demand(requests_per_s))
    }
}

/// Many environments of a world of the list; the methods are those of [`VecEnv`].
#[derive(Debug)]
pub enum AnyVecEnv {
    /// The fleet.
    Fleet(VecEnv<FleetLanes>),
    /// Discovery.
    Discovery(VecEnv<DiscoveryWorld>),
    /// `CartPole`, which has no scenarios; see [`AnyVecEnv::cartpole`].
    #[cfg(feature = "bench-worlds")]
    CartPole(VecEnv<CartPole>),
}

impl AnySnapshot {
    /// Name of the world whose rows it keeps.
    fn world(&self) -> &'static str {
        match self {
            AnySnapshot::Fleet(_) => "fleet",
            AnySnapshot::Discovery(_) => "discovery",
            #[cfg(feature = "bench-worlds")]
            AnySnapshot::CartPole(_) => "cartpole",
        }
    }
}

/// Rows kept in memory; see [`VecEnv::snapshot`].
#[derive(Debug, Clone)]
pub enum AnySnapshot {
    /// The fleet.
    Fleet(Snapshot<FleetLanes>),
    /// Discovery.
    Discovery(Snapshot<DiscoveryWorld>),
    /// `CartPole`.
    #[cfg(feature = "bench-worlds")]
    CartPole(Snapshot<CartPole>),
}

macro_rules! methods {
    ($($(#[$doc:meta])* fn $name:ident(&self $(, $arg:ident: $Arg:ty)*) $(-> $Out:ty)?;)*) => {
        $($(#[$doc])* pub fn $name(&self $(, $arg: $Arg)*) $(-> $Out)? {
            match self {
                AnyVecEnv::Fleet(env) => env.$name($($arg),*),
                AnyVecEnv::Discovery(env) => env.$name($($arg),*),
                #[cfg(feature = "bench-worlds")]
                AnyVecEnv::CartPole(env) => env.$name($($arg),*),
            }
        })*
    };
}

macro_rules! methods_mut {
    ($($(#[$doc:meta])* fn $name:ident(&mut self $(, $arg:ident: $Arg:ty)*) $(-> $Out:ty)?;)*) => {
        $($(#[$doc])* pub fn $name(&mut self $(, $arg: $Arg)*) $(-> $Out)? {
            match self {
                AnyVecEnv::Fleet(env) => env.$name($($arg),*),
                AnyVecEnv::Discovery(env) => env.$name($($arg),*),
                #[cfg(feature = "bench-worlds")]
                AnyVecEnv::CartPole(env) => env.$name($($arg),*),
            }
        })*
    };
}

impl AnyVecEnv {
    /// An engine of `num_envs` rows.
    pub fn new(world: AnyWorld, num_envs: usize, options: Options) -> Result<Self, VecError> {
        match world {
            AnyWorld::Fleet(world) => {
                VecEnv::new(Arc::new(FleetLanes::new(world)), num_envs, options).map(Self::Fleet)
            }
            AnyWorld::Discovery(world) => {
                VecEnv::new(Arc::new(world), num_envs, options).map(Self::Discovery)
            }
        }
    }

    /// An engine of `num_envs` carts. They have no scenario, so no [`AnyWorld`] stands for them.
    #[cfg(feature = "bench-worlds")]
    pub fn cartpole(num_envs: usize, options: Options) -> Result<Self, VecError> {
        VecEnv::new(Arc::new(CartPole::new()), num_envs, options).map(Self::CartPole)
    }

    methods! {
        /// What goes in and comes out.
        fn spec(&self) -> &Spec;
        /// Number of rows.
        fn num_envs(&self) -> usize;
        /// Numbers in an observation.
        fn obs_len(&self) -> usize;
        /// The options.
        fn options(&self) -> &Options;
        /// Columns of the right size.
        fn columns(&self) -> OwnedColumns;
        /// Writes the current observation of all rows.
        fn observe_into(&self, out: &mut [f32]) -> Result<(), VecError>;
        /// Writes a row's signals in natural units.
        fn signals(&self, row: usize, out: &mut [f64]) -> Result<(), VecError>;
        /// Writes a row's dials as they stand, in natural units.
        fn dials(&self, row: usize, out: &mut [f64]) -> Result<(), VecError>;
        /// Where a row stands.
        fn row(&self, row: usize) -> RowInfo;
        /// Rows whose episode ended in the last step.
        fn ended(&self) -> &[bool];
        /// Rows that began an episode in the last call.
        fn began(&self) -> &[bool];
        /// Sums over a row's last ended episode.
        fn episode_stats(&self, row: usize) -> EpisodeStats;
        /// As `episode_stats`, without the sums of the terms.
        fn episode_totals(&self, row: usize) -> EpisodeStats;
        /// The sums of the terms over a row's last ended episode.
        fn episode_terms(&self, row: usize) -> &[f64];
        /// Seed and number of a row's current episode.
        fn episode_key(&self, row: usize) -> (u64, u64);
        /// Sums over a row's running episode.
        fn running_stats(&self, row: usize) -> EpisodeStats;
        /// Whether a step would take these actions now.
        fn check_step(&self, actions: Actions<'_>) -> Result<(), VecError>;
        /// A row's state, as bytes.
        fn save(&self, row: usize) -> Result<Vec<u8>, VecError>;
        /// Hash over every bit of a row's state.
        fn digest(&self, row: usize) -> u64;
        /// Hash of what was drawn for a row's episode.
        fn digest_drawn(&self, row: usize) -> u64;
        /// What was drawn for a row's episode.
        fn drawn(&self, row: usize) -> Vec<(String, f64)>;
    }

    methods_mut! {
        /// Begins new episodes.
        fn reset(&mut self, seeds: Seeds<'_>, mask: Option<&[bool]>, out: &mut ResetColumns<'_>) -> Result<(), VecError>;
        /// Takes one decision in every row.
        fn step(&mut self, actions: Actions<'_>, out: &mut Columns<'_>) -> Result<StepSummary, VecError>;
        /// Changes the number of threads; results stay the same.
        fn set_threads(&mut self, threads: usize) -> Result<(), VecError>;
        /// Restores saved rows, all or none.
        fn load(&mut self, rows: &[usize], states: &[&[u8]]) -> Result<(), VecError>;
        /// Copies rows within the batch.
        fn copy_rows(&mut self, from: &[usize], to: &[usize]) -> Result<(), VecError>;
    }

    /// Hash of the parameters.
    pub fn params_hash(&self) -> u64 {
        match self {
            AnyVecEnv::Fleet(env) => env.world().params_hash(),
            AnyVecEnv::Discovery(env) => env.world().params_hash(),
            #[cfg(feature = "bench-worlds")]
            AnyVecEnv::CartPole(env) => env.world().params_hash(),
        }
    }

    /// The generator of its episodes.
    pub fn generator(&self) -> Generator {
        match self {
            AnyVecEnv::Fleet(env) => env.world().generator(),
            AnyVecEnv::Discovery(env) => env.world().generator(),
            #[cfg(feature = "bench-worlds")]
            AnyVecEnv::CartPole(env) => env.world().generator(),
        }
    }

    /// Name of the scenario that a row plays; of a mixture, the one that was drawn.
    pub fn scenario_of(&self, row: usize) -> &str {
        match self {
            AnyVecEnv::Fleet(env) => env.scenario_of(row),
            AnyVecEnv::Discovery(env) => env.scenario_of(row),
            #[cfg(feature = "bench-worlds")]
            AnyVecEnv::CartPole(env) => env.scenario_of(row),
        }
    }

    /// Keeps rows in memory.
    pub fn snapshot(&self, rows: &[usize]) -> Result<AnySnapshot, VecError> {
        match self {
            AnyVecEnv::Fleet(env) => env.snapshot(rows).map(AnySnapshot::Fleet),
            AnyVecEnv::Discovery(env) => env.snapshot(rows).map(AnySnapshot::Discovery),
            #[cfg(feature = "bench-worlds")]
            AnyVecEnv::CartPole(env) => env.snapshot(rows).map(AnySnapshot::CartPole),
        }
    }

    /// Puts kept rows back, here or in another engine of the same world.
    pub fn restore(&mut self, snapshot: &AnySnapshot, rows: &[usize]) -> Result<(), VecError> {
        match (self, snapshot) {
            (AnyVecEnv::Fleet(env), AnySnapshot::Fleet(snapshot)) => env.restore(snapshot, rows),
            (AnyVecEnv::Discovery(env), AnySnapshot::Discovery(snapshot)) => {
                env.restore(snapshot, rows)
            }
            #[cfg(feature = "bench-worlds")]
            (AnyVecEnv::CartPole(env), AnySnapshot::CartPole(snapshot)) => {
                env.restore(snapshot, rows)
            }
            (env, snapshot) => Err(VecError::foreign(snapshot.world(), env.spec().world)),
        }
    }
}
