//! Whole trainings, small: they improve, they can be killed, and they do not depend on threads.
#![cfg(feature = "torch")]
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use oncall_ppo::checkpoint::{Checkpoint, Task};
use oncall_ppo::collect::Collector;
use oncall_ppo::config::Config;
use oncall_ppo::log::Line;
use oncall_ppo::params::Layout;
use oncall_ppo::train::{Run, Trainer, train, weights_path};
use oncall_ppo::update::Model;
use oncall_rollout::Rollout;
use oncall_weights::{Heads, Scratch, Weights};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ppo-{name}"));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn small() -> Config {
    Config {
        rows: 24,
        horizon: 40,
        minibatch: 240,
        hidden: 16,
        teacher: Some("runbook".to_owned()),
        teacher_updates: 2,
        ..Config::default()
    }
}

fn task(updates: u64) -> Task {
    let scenario = oncall_env::shipped("spike").unwrap();
    Task::new(&scenario, 7, updates * small().samples() as u64, small()).unwrap()
}

fn run(folder: &Folder, threads: usize) -> Run {
    Run { out: folder.0.clone(), threads, checkpoint_every: 3, evaluation_episodes: 8 }
}

fn trained(folder: &Folder, updates: u64, threads: usize, resume: bool) -> (Weights, Vec<Line>) {
    let mut lines = Vec::new();
    let scenario = oncall_env::shipped("spike").unwrap();
    let weights = train(scenario, &task(updates), &run(folder, threads), resume, &mut |line| {
        lines.push(line.clone());
    });
    (weights.unwrap(), lines)
}

#[test]
fn threads_change_no_bit() {
    let folders = ["one", "two", "five"].map(Folder::new);
    let found = [(0, 1), (1, 2), (2, 5)].map(|(folder, threads)| {
        trained(&folders[folder], 4, threads, false);
        fs::read(weights_path(&folders[folder].0)).unwrap()
    });
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
}

/// Before the first checkpoint, with a teacher and without, between two, and after the end.
#[test]
fn a_resumed_training_ends_with_the_same_bits() {
    let known = Folder::new("whole");
    let (_, lines) = trained(&known, 8, 2, false);
    let bytes = fs::read(weights_path(&known.0)).unwrap();
    let plain = |line: &Line| (line.update, line.return_usd.to_bits(), line.kl, line.entropy);
    for stop in [2, 3, 7] {
        let folder = Folder::new(&format!("stop-{stop}"));
        let scenario = oncall_env::shipped("spike").unwrap();
        // A training that dies in the middle of an update's report.
        let died = std::panic::catch_unwind(|| {
            train(scenario, &task(8), &run(&folder, 1), false, &mut |line| {
                assert!(line.update < f64::from(stop), "killed");
            })
        });
        assert!(died.is_err());
        let (_, rest) = trained(&folder, 8, 2, true);
        assert_eq!(fs::read(weights_path(&folder.0)).unwrap(), bytes, "stopped at {stop}");
        let last = &lines[lines.len() - rest.len()..];
        assert_eq!(
            rest.iter().map(plain).collect::<Vec<_>>(),
            last.iter().map(plain).collect::<Vec<_>>()
        );
        let log = fs::read_to_string(folder.0.join("training.csv")).unwrap();
        assert_eq!(log.lines().count(), 9, "{log}");
    }
    let (_, rest) = trained(&known, 8, 1, true);
    assert!(rest.is_empty());
    assert_eq!(fs::read(weights_path(&known.0)).unwrap(), bytes);
}

/// Over a rule that remembers, in the middle of its episodes.
#[test]
fn a_resumed_training_over_a_rule_ends_with_the_same_bits() {
    let config = Config {
        rows: 4,
        horizon: 15,
        minibatch: 60,
        hidden: 8,
        warm_up: 1,
        decision_interval: 3,
        over: Some("operator".to_owned()),
        first_share: 0.99,
        ..Config::default()
    };
    let start = || {
        let scenario = oncall_env::shipped("control-plane-outage").unwrap();
        let steps = 4 * config.samples() as u64;
        (Task::new(&scenario, 5, steps, config.clone()).unwrap(), scenario)
    };
    let play = |folder: &Folder, resume: bool, dies_at: f64| {
        let (task, scenario) = start();
        let run = Run {
            checkpoint_every: 1,
            evaluation_episodes: 0,
            ..run(folder, 1 + usize::from(resume))
        };
        std::panic::catch_unwind(|| {
            train(scenario, &task, &run, resume, &mut |line| {
                assert!(line.update < dies_at, "killed");
            })
        })
        .is_ok_and(|trained| trained.is_ok())
    };
    let (whole, killed) = (Folder::new("over-whole"), Folder::new("over-killed"));
    assert!(play(&whole, false, f64::INFINITY) && !play(&killed, false, 3.0));
    let checkpoint = Checkpoint::read(&killed.0.join("checkpoint.safetensors")).unwrap();
    assert_eq!((checkpoint.update, checkpoint.memories.len()), (2, 4 * 15));
    assert!(play(&killed, true, f64::INFINITY));
    let bytes = |folder: &Folder| fs::read(weights_path(&folder.0)).unwrap();
    assert_eq!(bytes(&killed), bytes(&whole));
    let weights = Weights::from_bytes(&bytes(&whole), start().1.world.spec()).unwrap();
    assert_eq!(weights.meta().over.as_deref(), Some("operator"));
    let (_, scenario) = start();
    let refused = Config { over: Some("oracle".to_owned()), ..config.clone() };
    let task = Task::new(&scenario, 5, 60, refused).unwrap();
    let error = Trainer::new(scenario, task, 1).err().unwrap().to_string();
    assert_eq!(error, "over = oracle: expected one that can save what it remembers");
}

/// The program itself, killed by the system while it works.
#[test]
fn a_killed_program_resumes() {
    let program = |folder: &Folder, resume: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oncall-ppo"));
        command.args(["train", "--scenario", "spike", "--steps", "40000", "--seed", "3"]);
        command.args(["--rows=20", "--horizon=20", "--minibatch=400", "--hidden=8"]);
        command.args(["--checkpoint-every=5", "--evaluation-episodes=4", "--out"]).arg(&folder.0);
        command.args(resume.then_some("--resume"));
        // The binary finds libtorch by itself.
        command.env_remove("LD_LIBRARY_PATH").stdout(Stdio::null());
        command
    };
    let (whole, killed) = (Folder::new("program-whole"), Folder::new("program-killed"));
    assert!(program(&whole, false).status().unwrap().success());
    let mut child = program(&killed, false).spawn().unwrap();
    let (checkpoint, began) = (killed.0.join("checkpoint.safetensors"), Instant::now());
    while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(Checkpoint::read(&checkpoint).unwrap().update < 100);
    assert!(program(&killed, true).status().unwrap().success());
    let weights = |folder: &Folder| fs::read(weights_path(&folder.0)).unwrap();
    assert_eq!(weights(&killed), weights(&whole));
}

/// What a training leaves, and the table of its weights against a rule.
#[test]
fn a_program_leaves_its_records_and_judges_its_weights() {
    let folder = Folder::new("program-records");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oncall-ppo"));
        let output = command.args(args).env_remove("LD_LIBRARY_PATH").output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let out = folder.0.to_str().unwrap();
    let small = ["--rows=20", "--horizon=20", "--minibatch=400", "--hidden=8", "--out", out];
    let train = ["train", "--scenario=spike", "--steps=8000", "--evaluation-episodes=4"];
    let (ok, told, error) = run(&[&train[..], &small[..]].concat());
    assert!(ok, "{error}");
    assert!(told.contains("time: environment ") && told.contains("rollback "), "{told}");
    assert!(told.contains("did not pass runbook (-2"), "{told}");
    let log = fs::read_to_string(folder.0.join("training.csv")).unwrap();
    let names: Vec<&str> = log.lines().next().unwrap().split(',').collect();
    let last: Vec<f64> =
        log.lines().last().unwrap().split(',').map(|value| value.parse().unwrap()).collect();
    let of = |name: &str| last[names.iter().position(|column| *column == name).unwrap()];
    assert_eq!((of("update"), last.len()), (20.0, names.len()));
    assert!((of("environment_s") + of("forward_s") - of("rollout_s")).abs() < 1e-9);
    assert!(of("environment_s") > 0.0 && of("forward_s") > 0.0 && of("update_s") > 0.0);
    let dials = names.iter().filter(|name| name.starts_with("entropy_"));
    let sum: f64 = dials.map(|name| of(name)).sum();
    assert!((sum - of("entropy")).abs() < 1e-4, "{sum}");
    let curve = fs::read_to_string(folder.0.join("curve.svg")).unwrap();
    assert!(curve.contains("finished policy") && curve.contains(">rollback<"));
    assert!(folder.0.join("events.out.tfevents.0.oncall-ppo").is_file());
    let weights = folder.0.join("policy.safetensors");
    let weights = weights.to_str().unwrap();
    let judge = ["evaluate", "--episodes=5", "--policies=runbook,hold", "--weights"];
    let (ok, table, error) = run(&[&judge[..], &[weights]].concat());
    assert!(ok, "{error}");
    for part in ["spike: 5 test episodes", "  trained ", "  runbook ", "  hold "] {
        assert!(table.contains(part), "{table}");
    }
    let (ok, _, error) = run(&["evaluate", "--weights", "nowhere"]);
    assert!(!ok && error.contains("nowhere"), "{error}");
}

/// The file's numbers, read back and played in plain Rust, against libtorch, on what is really seen.
#[test]
fn written_weights_are_those_that_were_trained() {
    let folder = Folder::new("round-trip");
    trained(&folder, 6, 2, false);
    let scenario = oncall_env::shipped("spike").unwrap();
    let spec = scenario.world.spec();
    let bytes = fs::read(weights_path(&folder.0)).unwrap();
    let weights = Weights::from_bytes(&bytes, spec).unwrap();
    assert_eq!(weights.to_bytes(), bytes);
    let checkpoint = Checkpoint::read(&folder.0.join("checkpoint.safetensors")).unwrap();

    let mut collector = Collector::new(&scenario, &small(), 5, 1).unwrap();
    let shape = collector.shape();
    let heads = Heads::of(spec);
    let layout = Layout::new((shape.observation, shape.context), small().hidden, heads.logits());
    let mut rollout = Rollout::new(shape);
    let networks = layout.networks(&checkpoint.params);
    collector.collect(&networks, 0, &mut rollout).unwrap();

    let (stride, outputs) = (weights.actor().stride(), weights.actor().outputs());
    let mut scratch = Scratch::default();
    let own = weights.actor().forward(&rollout.observations, &mut scratch).to_vec();
    let dials = heads.count();
    let model = Model::new(layout.clone(), heads, vec![1.0; dials]);
    let folded = layout.folded(&checkpoint.params, &checkpoint.inputs);
    let (known, _) = model.play(&folded, &rollout.observations, &rollout.contexts);
    let mut standard = rollout.observations.clone();
    checkpoint.inputs.apply(&mut standard);
    let (trained, _) = model.play(&checkpoint.params, &standard, &rollout.contexts);
    let (mut to_file, mut to_trained) = (0.0_f32, 0.0_f32);
    for (row, own) in own.chunks_exact(stride).enumerate() {
        for (place, own) in own[..outputs].iter().enumerate() {
            to_file = to_file.max((own - known[row * outputs + place]).abs());
            to_trained = to_trained.max((own - trained[row * outputs + place]).abs());
        }
    }
    assert!(to_file < 1e-5, "{to_file}");
    // The standardisation went into the first layer, so sums are rounded otherwise.
    assert!(to_trained < 1e-4, "{to_trained}");
    assert!(own.iter().any(|logit| logit.abs() > 0.1));
}

#[test]
fn foreign_checkpoints_are_refused() {
    let folder = Folder::new("foreign");
    trained(&folder, 3, 1, false);
    let again = |task: &Task, resume| {
        let scenario = oncall_env::shipped("spike").unwrap();
        let error = train(scenario, task, &run(&folder, 1), resume, &mut |_| ()).unwrap_err();
        format!("{error:#}")
    };
    let error = again(&task(3), false);
    assert!(error.contains("holds a checkpoint already; add --resume"), "{error}");
    let error = again(&Task { seed: 8, ..task(3) }, true);
    assert!(error.contains("of another training") && error.contains("\"seed\":7"), "{error}");
    let path = folder.0.join("checkpoint.safetensors");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = again(&task(3), true);
    assert!(error.contains("not a safetensors file"), "{error}");
}

/// The rule's own return is -25 dollars; nobody at the dials costs 155.
#[test]
fn a_teacher_is_soon_imitated() {
    let scenario = oncall_env::shipped("spike").unwrap();
    let config = Config {
        rows: 64,
        horizon: 60,
        minibatch: 480,
        hidden: 32,
        teacher: Some("runbook".to_owned()),
        teacher_updates: 1000,
        ..Config::default()
    };
    let task = Task::new(&scenario, 1, 200 * config.samples() as u64, config).unwrap();
    let mut trainer = Trainer::new(scenario, task, 2).unwrap();
    let mut last = Line::default();
    while !trainer.is_done() {
        last = trainer.step().unwrap();
    }
    assert!(last.return_usd > -40.0, "{last:?}");
    let found = trainer.weights(200).unwrap().meta().evaluation.clone().unwrap();
    assert!(found.return_usd > -60.0, "{found:?}");
}

/// `hold` never turns a dial: repeated to the end, nothing else is ever tried.
#[test]
fn entropy_keeps_a_teachers_other_choices_possible() {
    let entropies = |weight: f64, explore: &[&str]| {
        let scenario = oncall_env::shipped("spike").unwrap();
        let config = Config {
            teacher: Some("hold".to_owned()),
            teacher_updates: 1000,
            teacher_entropy_weight: weight,
            explore: explore.iter().map(|&name| name.to_owned()).collect(),
            ..small()
        };
        let task = Task::new(&scenario, 1, 60 * config.samples() as u64, config).unwrap();
        let mut trainer = Trainer::new(scenario, task, 2).unwrap();
        let mut last = Line::default();
        while !trainer.is_done() {
            last = trainer.step().unwrap();
        }
        (last.entropy, last.dial_entropies)
    };
    let (sure, open) = (entropies(0.0, &[]).0, entropies(0.3, &[]).0);
    assert!(sure < 0.05 && open > 0.5, "{sure} {open}");
    // Only the dial that is named.
    let (all, each) = entropies(0.3, &["shed_share"]);
    let named = oncall_env::shipped("spike").unwrap().world.spec().dial("shed_share").unwrap();
    assert!(each[named] > 0.05 && all - each[named] < 0.05, "{all} {each:?}");
    let config = Config { explore: vec!["shed".to_owned()], ..small() };
    let scenario = oncall_env::shipped("spike").unwrap();
    let task = Task::new(&scenario, 1, 1000, config).unwrap();
    let error = format!("{:#}", Trainer::new(scenario, task, 1).err().unwrap());
    assert!(error.starts_with("explore = shed: expected dials"), "{error}");
}

#[test]
fn unknown_teachers_are_refused() {
    let scenario = oncall_env::shipped("spike").unwrap();
    let config = Config { teacher: Some("runbok".to_owned()), ..small() };
    let task = Task::new(&scenario, 1, 1000, config).unwrap();
    let error = format!("{:#}", Trainer::new(scenario, task, 1).err().unwrap());
    assert!(error.starts_with("teacher = runbok: policy `runbok` is not known"), "{error}");
}

#[test]
fn training_improves_on_its_start() {
    let scenario = oncall_env::shipped("spike").unwrap();
    let config = Config { rows: 64, horizon: 60, minibatch: 960, hidden: 32, ..Config::default() };
    let task = Task::new(&scenario, 1, 100 * config.samples() as u64, config).unwrap();
    let mut trainer = Trainer::new(scenario, task, 2).unwrap();
    let before = trainer.weights(200).unwrap().meta().evaluation.clone().unwrap();
    while !trainer.is_done() {
        trainer.step().unwrap();
    }
    let after = trainer.weights(200).unwrap().meta().evaluation.clone().unwrap();
    // Nobody at the dials costs 155 dollars, the tuned autoscaler 43.
    assert!(before.return_usd < -100.0, "{before:?}");
    assert!(after.return_usd > -60.0, "{after:?}");
}
