//! Tunes the policies on training seeds and prints tables; this is how `tuned.json` was made.
//!
//! ```text
//! cargo run --release -p oncall-heuristics --example tune -- tune runbook spike
//! cargo run --release -p oncall-heuristics --example tune -- table spike cache-flush
//! cargo run --release -p oncall-heuristics --example tune -- terms runbook spike
//! ```

use oncall_core::streams::row_seed;
use oncall_core::{EpisodeKey, Split, World};
use oncall_fleet::FleetWorld;
use oncall_heuristics::registry::{self, cheats};
use oncall_heuristics::tune::{Search, search};
use oncall_heuristics::tuned::{self, Tuned};
use oncall_heuristics::{PolicyKey, PolicySpec, build_for, describe};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

type Any<T> = Result<T, Box<dyn std::error::Error>>;

/// Root seed of the episodes that are tuned on, and of those that only report.
const TUNE_SEED: u64 = 2_024;
const REPORT_SEED: u64 = 77;
const TUNE_EPISODES: u64 = 240;
const REPORT_EPISODES: u64 = 500;
/// What the set for all scenarios is tuned on.
const ALL: [&str; 7] = [
    "spike",
    "bad-build",
    "cache-flush",
    "steady",
    "spike-hard",
    "bad-build-hard",
    "cache-flush-hard",
];
/// Policies of the table, apart from the cheats.
const TABLE: [&str; 9] = [
    "hold",
    "random",
    "fixed-20",
    "best-fixed",
    "target-tracking",
    "hpa",
    "open-loop",
    "runbook",
    "fixed-40",
];
const TERMS: usize = 6;

struct Scene {
    name: String,
    world: FleetWorld,
}

fn scene(name: &str) -> Any<Scene> {
    let text = oncall_scenario::shipped_text(name).ok_or_else(|| format!("no scenario {name}"))?;
    let scenario = oncall_scenario::load(text, &oncall_scenario::ShippedFiles)?;
    Ok(Scene { name: name.to_owned(), world: scenario.world })
}

/// Dollars by term of one episode.
fn play(scene: &Scene, spec: &PolicySpec, as_if: &str, seed: u64) -> Any<[f64; TERMS]> {
    let world = &scene.world;
    let (dials, signals) = (&world.spec().dials, world.spec().signals.len());
    let mut policy = build_for(spec, world.spec(), as_if)?;
    policy.reset(PolicyKey { seed, episode: 0 });
    let mut block = world.new_block();
    world.reset(&mut block, 0, EpisodeKey::new(seed, 0, Split::Train, world.generator()));
    let (mut row, mut action) = (vec![0.0; signals], vec![0.0; dials.len()]);
    let (mut terms, mut total, mut ended) = ([0.0; TERMS], [0.0; TERMS], [false]);
    for _ in 0..world.length_min(&block, 0) {
        world.signals(&block, 0, &mut row);
        policy.act(&row, &mut action);
        for (value, dial) in action.iter_mut().zip(dials) {
            if !value.is_nan() {
                assert!(dial.accepts(*value), "{} {} = {value}", spec.name, dial.name);
                *value = dial.settle(*value);
            }
        }
        world.step(&mut block, &[true], &action, &mut terms, &mut ended);
        total.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    Ok(total)
}

/// Mean dollars by term over paired episodes.
fn terms(
    scene: &Scene,
    spec: &PolicySpec,
    as_if: &str,
    root: u64,
    episodes: u64,
) -> Any<[f64; TERMS]> {
    let mut sum = [0.0; TERMS];
    for row in 0..episodes {
        let played = play(scene, spec, as_if, row_seed(root, row))?;
        sum.iter_mut().zip(played).for_each(|(sum, term)| *sum += term / episodes as f64);
    }
    Ok(sum)
}

fn mean_return(scene: &Scene, spec: &PolicySpec, as_if: &str, root: u64, episodes: u64) -> f64 {
    terms(scene, spec, as_if, root, episodes).map_or(f64::NAN, |terms| -terms.iter().sum::<f64>())
}

/// Mean return of each candidate over scenes, on all cores.
fn score(scenes: &[Scene], specs: &[PolicySpec], root: u64, episodes: u64) -> Vec<f64> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(spec) = specs.get(index) else { return found };
            let of = |scene: &Scene| mean_return(scene, spec, "", root, episodes);
            found.push((index, scenes.iter().map(of).sum::<f64>() / scenes.len() as f64));
        }
    };
    let mut scores = vec![f64::NAN; specs.len()];
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            for (index, value) in worker.join().unwrap_or_default() {
                scores[index] = value;
            }
        }
    });
    scores
}

fn tune(policy: &str, target: &str, start: Option<&str>) -> Any<()> {
    let names: Vec<&str> = if target == tuned::DEFAULT { ALL.to_vec() } else { vec![target] };
    let scenes: Vec<Scene> = names.iter().map(|name| scene(name)).collect::<Any<_>>()?;
    let episodes = (TUNE_EPISODES / scenes.len() as u64).max(60);
    let options = match policy {
        "open-loop" => Search::schedule(1),
        "runbook" => Search::rule(1),
        _ => Search { rounds: 10, population: 40, ..Search::rule(1) },
    };
    // A schedule starts from the best fixed setting in every block.
    let start = match (policy, start) {
        ("open-loop", None)
            if !tuned::table().get(policy).is_some_and(|sets| sets.contains_key(target)) =>
        {
            let fixed = registry::resolve(&PolicySpec::new("best-fixed"), "fleet", target)?;
            let mut spec = PolicySpec::new("open-loop");
            for (name, value) in fixed.params {
                let dial = ["min_instances", "cache_ttl_s", "shed_share", "feature"]
                    .contains(&name.as_str());
                spec.params
                    .extend((0..24).filter(|_| dial).map(|b| (format!("b{b:02}_{name}"), value)));
            }
            spec
        }
        (_, Some(text)) => text.parse()?,
        _ => PolicySpec::new(policy),
    };
    // Tolerance and window are what makes the algorithm that of Kubernetes.
    let free: &[&str] = if policy == "hpa" { &["target", "min"] } else { &[] };
    let mut round = 0;
    let found = search(&start, target, free, &options, &mut |specs| {
        let scores = score(&scenes, specs, TUNE_SEED, episodes);
        let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        eprintln!("{policy} {target} {round}: {best:.3}");
        round += 1;
        scores
    })?;
    let best = rounded(&found.best)?;
    let score = score(&scenes, std::slice::from_ref(&best), TUNE_SEED, episodes)[0];
    println!("{policy} {target}: {score:.3} after {} candidates\n{best}", found.scored);
    save(policy, target, &best, score, episodes * scenes.len() as u64)
}

/// Four decimals are as far as a parameter is meant.
fn rounded(spec: &PolicySpec) -> Any<PolicySpec> {
    let description = describe(&spec.name).ok_or("an unknown policy")?;
    let mut spec = spec.clone();
    for (name, value) in &mut spec.params {
        let param =
            description.params.iter().find(|param| param.name == *name).ok_or("a parameter")?;
        *value = ((*value * 1e4).round() / 1e4).clamp(param.low, param.high);
    }
    Ok(spec)
}

/// Enters a set into the file.
fn save(policy: &str, target: &str, spec: &PolicySpec, score: f64, episodes: u64) -> Any<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tuned.json");
    let mut table: tuned::Table = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let description = describe(policy).ok_or("an unknown policy")?;
    let is_default = |name: &str, value: f64| {
        description.params.iter().any(|param| param.name == name && param.default == Some(value))
    };
    let params: BTreeMap<String, f64> =
        spec.params.iter().filter(|(name, value)| !is_default(name, *value)).cloned().collect();
    let return_usd = (score * 1e3).round() / 1e3;
    let set = Tuned { seed: TUNE_SEED, episodes: u32::try_from(episodes)?, return_usd, params };
    table.entry(policy.to_owned()).or_default().insert(target.to_owned(), set);
    std::fs::write(path, serde_json::to_string_pretty(&table)? + "\n")?;
    Ok(())
}

fn table(names: &[String]) -> Any<()> {
    let all: Vec<String> = ALL.iter().map(|name| (*name).to_owned()).collect();
    let names = if names.is_empty() { &all } else { names };
    let scenes: Vec<Scene> = names.iter().map(|name| scene(name)).collect::<Any<_>>()?;
    println!("| policy | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
    let mut rows: Vec<(String, String)> = TABLE
        .iter()
        .copied()
        .chain(cheats())
        .map(|name| (name.to_owned(), String::new()))
        .collect();
    rows.insert(8, ("runbook".to_owned(), tuned::DEFAULT.to_owned()));
    for (name, as_if) in rows {
        let spec: PolicySpec = name.parse()?;
        let shown = |scene: &Scene| {
            let set = if as_if.is_empty() { &scene.name } else { &as_if };
            format!("{:.2}", mean_return(scene, &spec, set, REPORT_SEED, REPORT_EPISODES))
        };
        let cells: Vec<String> = scenes.iter().map(shown).collect();
        println!("| {name} {as_if} | {} |", cells.join(" | "));
    }
    Ok(())
}

fn main() -> Any<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("tune") if args.len() >= 3 => tune(&args[1], &args[2], args.get(3).map(String::as_str)),
        Some("terms") if args.len() >= 3 => {
            let (scene, spec) = (scene(&args[2])?, args[1].parse()?);
            let found = terms(&scene, &spec, &args[2], REPORT_SEED, REPORT_EPISODES)?;
            println!("{:.3}", -found.iter().sum::<f64>());
            for (term, usd) in scene.world.spec().terms.iter().zip(found) {
                println!("  {} {usd:.3}", term.name);
            }
            Ok(())
        }
        Some("table") => table(&args[1..]),
        _ => Err("expected: tune POLICY SCENARIO|default [START] | table [SCENARIO..] | terms POLICY SCENARIO".into()),
    }
}
