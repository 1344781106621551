//! Hyper-parameters.

use anyhow::{Result, bail};
use oncall_weights::Grid;
use serde::{Deserialize, Serialize};

/// Everything that a training's result depends on, apart from the scenario, the seed and the length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Environments that play side by side.
    #[arg(long, default_value_t = 512)]
    pub rows: usize,
    /// Decisions of each environment between two updates.
    #[arg(long, default_value_t = 64)]
    pub horizon: usize,
    /// Ticks of the world that a decision stands. Where a tick is short and dials travel slowly, a choice made
    /// by chance does nothing before the next one undoes it, so that nothing is learned of it.
    #[arg(long, value_name = "TICKS", default_value_t = 1)]
    #[serde(default = "one")]
    pub decision_interval: u32,
    /// Width of the two hidden layers, of the actor and of the critic.
    #[arg(long, default_value_t = 64)]
    pub hidden: usize,
    /// Passes over a roll-out.
    #[arg(long, default_value_t = 2)]
    pub epochs: usize,
    /// Samples of one step of the optimiser.
    #[arg(long, default_value_t = 2048)]
    pub minibatch: usize,
    /// Parts of a minibatch, each on one thread. Part of the result: sums are rounded in this order.
    #[arg(long, default_value_t = 2)]
    pub shards: usize,
    /// Learning rate at the start; it falls linearly to zero at the end.
    #[arg(long, default_value_t = 5e-3)]
    pub learning_rate: f64,
    /// How much a step later counts.
    #[arg(long, default_value_t = 0.99)]
    pub gamma: f64,
    /// How far advantages trust rewards rather than the critic.
    #[arg(long, default_value_t = 0.95)]
    pub lambda: f64,
    /// How far an update may move a decision's probability, as a share, before it counts no more.
    #[arg(long, default_value_t = 0.2)]
    pub clip: f64,
    /// Weight of the entropy, summed over the dials, in the loss at the start; it falls linearly to
    /// zero at the end, so that the policy makes up its mind.
    #[arg(long, default_value_t = 1e-2)]
    pub entropy_weight: f64,
    /// Weight of the critic's squared error in the loss.
    #[arg(long, default_value_t = 0.5)]
    pub value_weight: f64,
    /// Largest norm of a gradient; a longer one is shortened to it.
    #[arg(long, default_value_t = 0.5)]
    pub gradient_norm_max: f64,
    /// Values of a dial that can be chosen: `stops` of the multi-discrete space, `fine` for more, or a JSON
    /// file `{"dial": [value, ..], ..}`: the first value stands where nothing else is chosen, and dials that
    /// are not in it are never turned.
    #[arg(long, value_parser = grid, default_value = "stops", value_name = "stops|fine|FILE")]
    pub grid: Grid,
    /// A rule whose decision is the first choice of every dial, as `oncall eval` takes it: `operator`, for example.
    /// What is learned is when to deviate from it, and to what. The rule decides at every tick; a deviation stands
    /// for the decision interval, which must divide the episodes' lengths. The rule must be able to save what it
    /// remembers. Of a menu, dials that are not in it are always the rule's.
    #[arg(long, value_name = "RULE", conflicts_with = "teacher")]
    #[serde(default)]
    pub over: Option<String>,
    /// Probability of a dial's first choice before anything is learned; of a button, halfway from there to 1
    /// (0.95 for 0.9). Nearer to 1 with many dials, or over a rule that is good already.
    #[arg(long, default_value_t = FIRST_SHARE)]
    #[serde(default = "first_share")]
    pub first_share: f64,
    /// Added to the optimiser's denominator.
    #[arg(long, default_value_t = 1e-5)]
    pub adam_epsilon: f64,
    /// Largest size of a scaled reward.
    #[arg(long, default_value_t = 10.0)]
    pub reward_clip: f64,
    /// Roll-outs of the untrained policy before the first update. Mean and spread of what they show
    /// standardise the observations from then on; with 0, observations are taken as they are.
    #[arg(long, default_value_t = 4)]
    pub warm_up: u64,
    /// Whom to learn from before anything else, as `oncall eval` takes it: `runbook`, for example, or
    /// `planner-honest`.
    #[arg(long)]
    pub teacher: Option<String>,
    /// Tell the teacher which scenario of a mixture each row plays: it decides as the policy of that scenario.
    #[arg(long)]
    pub teacher_told: bool,
    /// Updates that repeat the teacher's decisions. There is no checkpoint before they are over.
    #[arg(long, default_value_t = 60)]
    pub teacher_updates: u64,
    /// Learning rate while the teacher's decisions are repeated.
    #[arg(long, default_value_t = 5e-3)]
    pub teacher_learning_rate: f64,
    /// That of the last of these updates; it falls there evenly. As at the start, if not given.
    #[arg(long, value_name = "RATE")]
    #[serde(default)]
    pub teacher_learning_rate_end: Option<f64>,
    /// Weight of the entropy while the teacher's decisions are repeated. Of a teacher who always decides alike, 0
    /// leaves a policy that tries nothing else; a weight w leaves each other choice a chance of about exp(-1/w).
    #[arg(long, default_value_t = 0.0)]
    #[serde(default)]
    pub teacher_entropy_weight: f64,
    /// Dials whose entropy counts; all, if not given. With a teacher, the others stay where he has them: what is
    /// repeated without entropy is soon certain.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    #[serde(default)]
    pub explore: Vec<String>,
    /// Do not tell the critic what was drawn for the episode (when the surge comes, for example). The
    /// actor is never told.
    #[arg(long)]
    pub plain_critic: bool,
    /// Count the value of the last observation at the end of a shift, as if work went on. Without it
    /// the end is the end, which is what the score counts, and the observation says when it comes.
    #[arg(long)]
    pub bootstrap_end: bool,
}

/// As `Spec` asks of untrained policies: they keep with 90 % and press with 5 %.
pub const FIRST_SHARE: f64 = 0.9;

/// What checkpoints of before there was a choice stand for.
fn one() -> u32 {
    1
}

fn first_share() -> f64 {
    FIRST_SHARE
}

/// `stops`, `fine`, or a file with a menu.
fn grid(text: &str) -> Result<Grid, String> {
    match text {
        "stops" => Ok(Grid::Stops),
        "fine" => Ok(Grid::Fine),
        path => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("expected stops, fine or a JSON file: {error}"))?;
            serde_json::from_str(&text).map(Grid::Menu).map_err(|error| {
                format!("expected {{\"dial\": [value, ..], ..}} in the file: {error}")
            })
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        use clap::{Args, FromArgMatches};
        let matches = Self::augment_args(clap::Command::new("config").no_binary_name(true))
            .get_matches_from(std::iter::empty::<&str>());
        Self::from_arg_matches(&matches).expect("every hyper-parameter has a default")
    }
}

impl Config {
    /// Checks every value, with its name.
    pub fn check(&self) -> Result<()> {
        let counts = [
            ("rows", self.rows, 1 << 20),
            ("horizon", self.horizon, 1 << 20),
            ("decision_interval", self.decision_interval as usize, 60),
            ("hidden", self.hidden, 4096),
            ("epochs", self.epochs, 100),
            ("minibatch", self.minibatch, 1 << 24),
            ("shards", self.shards, 64),
        ];
        for (name, value, max) in counts {
            if !(1..=max).contains(&value) {
                bail!("{name} = {value}: expected 1..={max}");
            }
        }
        let numbers = [
            ("learning_rate", self.learning_rate, 1.0),
            ("teacher_learning_rate", self.teacher_learning_rate, 1.0),
            (
                "teacher_learning_rate_end",
                self.teacher_learning_rate_end.unwrap_or(self.teacher_learning_rate),
                1.0,
            ),
            ("gamma", self.gamma, 1.0),
            ("lambda", self.lambda, 1.0),
            ("clip", self.clip, 1.0),
            ("entropy_weight", self.entropy_weight, 10.0),
            ("teacher_entropy_weight", self.teacher_entropy_weight, 10.0),
            ("value_weight", self.value_weight, 100.0),
            ("gradient_norm_max", self.gradient_norm_max, 1e6),
            ("adam_epsilon", self.adam_epsilon, 1.0),
            ("reward_clip", self.reward_clip, 1e9),
        ];
        for (name, value, max) in numbers {
            if !(0.0..=max).contains(&value) {
                bail!("{name} = {value}: expected 0..={max}");
            }
        }
        if !(self.first_share > 0.0 && self.first_share < 1.0) {
            bail!("first_share = {}: expected between 0 and 1", self.first_share);
        }
        if let (Some(over), Some(teacher)) = (&self.over, &self.teacher) {
            bail!("over = {over}: expected no teacher beside it, found {teacher}");
        }
        let samples = self.samples();
        if !samples.is_multiple_of(self.minibatch) || !self.minibatch.is_multiple_of(self.shards) {
            bail!(
                "minibatch = {}: expected a divisor of rows * horizon = {samples} that {} shards divide",
                self.minibatch,
                self.shards
            );
        }
        Ok(())
    }

    /// Updates that follow a teacher.
    pub fn taught(&self) -> u64 {
        if self.teacher.is_some() { self.teacher_updates } else { 0 }
    }

    /// Learning rate of an update that follows a teacher.
    pub fn teacher_rate(&self, update: u64) -> f64 {
        let start = self.teacher_learning_rate;
        let gone = update as f64 / (self.taught().max(2) - 1) as f64;
        start + (self.teacher_learning_rate_end.unwrap_or(start) - start) * gone.min(1.0)
    }

    /// Samples of a roll-out.
    pub fn samples(&self) -> usize {
        self.rows * self.horizon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_survive_json() {
        let config = Config::default();
        config.check().unwrap();
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
    }

    #[test]
    fn the_rate_falls_while_a_teacher_is_repeated() {
        let mut config = Config {
            teacher: Some("runbook".to_owned()),
            teacher_updates: 5,
            teacher_learning_rate: 0.5,
            ..Config::default()
        };
        assert_eq!([0, 4].map(|update| config.teacher_rate(update)), [0.5, 0.5]);
        config.teacher_learning_rate_end = Some(0.25);
        assert_eq!([0, 2, 4].map(|update| config.teacher_rate(update)), [0.5, 0.375, 0.25]);
    }

    #[test]
    fn a_grid_is_a_name_or_a_file() {
        assert_eq!(grid("fine"), Ok(Grid::Fine));
        assert!(grid("coarse").unwrap_err().starts_with("expected stops, fine or a JSON file: "));
        let path = std::env::temp_dir().join(format!("oncall-menu-{}", std::process::id()));
        std::fs::write(&path, r#"{"shed_share": [0, 0.5]}"#).unwrap();
        let found = grid(path.to_str().unwrap());
        std::fs::write(&path, r#"{"shed_share": 1}"#).unwrap();
        let error = grid(path.to_str().unwrap()).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        let menu = [("shed_share".to_owned(), vec![0.0, 0.5])];
        assert_eq!(found, Ok(Grid::Menu(menu.into())));
        assert!(error.starts_with("expected {\"dial\": [value, ..], ..} in the file: "), "{error}");
    }

    /// What it says nothing of stands where the best setting has it, too.
    #[test]
    fn the_menu_of_discovery_begins_at_the_best_setting() {
        let menu = grid(concat!(env!("CARGO_MANIFEST_DIR"), "/discovery_menu.json")).unwrap();
        let spec = oncall_env::shipped("mixed-discovery").unwrap().world.spec().clone();
        menu.check(&spec).unwrap();
        let Grid::Menu(menu) = menu else { panic!("{menu:?}") };
        let mut rule = oncall_planner::build_policy("static", &spec, "mixed-discovery").unwrap();
        let mut dials = vec![0.0; spec.dials.len()];
        rule.act(&vec![0.0; spec.signals.len()], &mut dials);
        for (dial, stands) in spec.dials.iter().zip(dials) {
            let begins = menu.get(dial.name).map_or(dial.default, |values| values[0]);
            assert_eq!(begins, stands, "{}", dial.name);
        }
    }

    #[test]
    fn the_deviations_of_discovery_are_values_of_its_dials() {
        let grid = grid(concat!(env!("CARGO_MANIFEST_DIR"), "/discovery_deviations.json")).unwrap();
        grid.check(oncall_env::shipped("mixed-discovery").unwrap().world.spec()).unwrap();
    }

    #[test]
    fn bad_values_are_named() {
        let error = |change: &dyn Fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert_eq!(error(&|c| c.rows = 0), "rows = 0: expected 1..=1048576");
        assert_eq!(error(&|c| c.gamma = 1.5), "gamma = 1.5: expected 0..=1");
        assert_eq!(error(&|c| c.clip = f64::NAN), "clip = NaN: expected 0..=1");
        assert_eq!(error(&|c| c.first_share = 1.0), "first_share = 1: expected between 0 and 1");
        let both = error(&|c| {
            (c.over, c.teacher) = (Some("hold".to_owned()), Some("runbook".to_owned()));
        });
        assert_eq!(both, "over = hold: expected no teacher beside it, found runbook");
        assert!(error(&|c| c.minibatch = 3000).starts_with("minibatch = 3000: expected a divisor"));
        assert!(error(&|c| c.shards = 3).contains("that 3 shards divide"));
    }
}
