//! What the parts of a minute cost, each alone: the profile as data.
//!
//! `cargo run --release -p oncall-bench -- parts`

use oncall_core::draw::box_muller;
use oncall_core::isa::{self, Isa, Kernel};
use oncall_core::streams::Purpose;
use oncall_core::{EpisodeKey, Generator, Scale, Signal, Split, View, World, math};
use oncall_env::{AnyWorld, shipped};
use oncall_fleet::{FleetLanes, FleetWorld, Lane, erlang, queue};
use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

/// Numbers that a part works on: as many as fit the first-level cache.
const N: usize = 1024;
/// The shortest of many runs is the figure: a neighbour on the machine only ever adds.
const RUNS: usize = 200;

/// A loop over numbers, compiled for each set of instructions.
struct Map<'a, F> {
    from: &'a [f64; N],
    to: &'a mut [f64; N],
    function: F,
}

impl<F: Fn(f64) -> f64> Kernel for Map<'_, F> {
    type Out = ();
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    fn run(self) {
        for i in 0..N {
            self.to[i] = (self.function)(self.from[i]);
        }
    }
}

/// The scaling of many values of one signal.
struct Scaled<'a>(&'a oncall_core::Scaler, &'a [f64; N], &'a mut [f32; N]);
impl Kernel for Scaled<'_> {
    type Out = ();
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    fn run(self) {
        self.0.apply_all(self.1, self.2);
    }
}

/// Nanoseconds of the shortest run, over `count` things.
fn shortest(count: usize, mut work: impl FnMut()) -> f64 {
    let run = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    let best = (0..RUNS).map(|_| run(&mut work)).fold(f64::MAX, f64::min);
    best * 1e9 / count as f64
}

fn map(from: &[f64; N], function: impl Fn(f64) -> f64 + Copy) -> f64 {
    let mut to = [0.0; N];
    shortest(N, || isa::run(Map { from: black_box(from), to: black_box(&mut to), function }))
}

fn functions(add: &mut dyn FnMut(&str, f64)) {
    let shares: [f64; N] = std::array::from_fn(|i| (i as f64 + 0.5) / N as f64);
    add("exp", map(&shares, |x| math::exp(-20.0 * x)));
    add("ln", map(&shares, math::ln_normal));
    add(
        "sin and cos",
        map(&shares, |x| {
            let (sin, cos) = math::sin_cos_normal(std::f64::consts::TAU * x);
            sin + cos
        }),
    );
    add(
        "Box-Muller pair",
        map(&shares, |x| {
            let (a, b) = box_muller(x, 1.0 - x);
            a + b
        }),
    );
    add(
        "two uniform numbers",
        map(&shares, |x| {
            let (a, b) = EpisodeKey::pcg(x.to_bits()).pcg_pair(Purpose::Demand, 7);
            a + b
        }),
    );
    let signal = Signal {
        name: "x",
        label: "",
        unit: "",
        low: 0.0,
        high: 1000.0,
        scale: Scale::Symlog { knee: 1.0 },
        view: View::Operator,
        column: false,
        doc: "",
    };
    let scaler = signal.scaler();
    let mut scaled = [0.0_f32; N];
    let work = || isa::run(Scaled(&scaler, black_box(&shares), black_box(&mut scaled)));
    add("scaling of a number of an observation", shortest(N, work));
}

fn queues(add: &mut dyn FnMut(&str, f64)) {
    for servers in [160_u32, 640] {
        let loads: Vec<f64> = (0..N).map(|i| f64::from(servers) * i as f64 / N as f64).collect();
        let plain = || {
            for &load in &loads {
                black_box(queue::erlang_c_reference(servers, load));
            }
        };
        add(&format!("Erlang C by recursion, {servers} servers"), shortest(N, plain));
        let table = || {
            for &load in &loads {
                black_box(queue::erlang_c(servers, load));
            }
        };
        add(&format!("Erlang C by table, {servers} servers"), shortest(N, table));
        let made = || {
            for &load in &loads {
                let table = erlang::table(servers as usize);
                black_box(table.tail(f64::from(servers) - load));
            }
        };
        add(&format!("of it the table, {servers} servers"), shortest(N, made));
    }
}

const DIALS: usize = 8;
const TERMS: usize = 6;
const MINUTES: usize = 240;

/// A shift of the plain minute, hands off.
fn plain_shift(fleet: &FleetWorld, lane: &mut Lane) {
    let (mut terms, mut ends) = ([0.0; TERMS], [false]);
    for _ in 0..MINUTES {
        fleet.step(lane, &[true], &[f64::NAN; DIALS], &mut terms, &mut ends);
    }
}

/// A shift of a block of services, hands off; some or all play.
fn shift<W: World>(world: &W, block: &mut W::Block, active: &[bool]) {
    let dials = [f64::NAN; DIALS * FleetLanes::LANES];
    let mut terms = [0.0; TERMS * FleetLanes::LANES];
    let mut ends = [false; FleetLanes::LANES];
    for _ in 0..MINUTES {
        world.step(block, active, &dials, &mut terms, &mut ends);
    }
}

fn minutes(add: &mut dyn FnMut(&str, f64)) -> Result<(), Box<dyn Error>> {
    let key = |lane: usize| EpisodeKey::new(lane as u64, 0, Split::Train, Generator::Pcg);
    for name in ["spike", "mixed-hard"] {
        #[allow(irrefutable_let_patterns, reason = "the list of worlds may hold others")]
        let AnyWorld::Fleet(fleet) = shipped(name).ok_or("no such scenario")?.world else {
            return Err("no fleet".into());
        };
        let mut lane = fleet.new_block();
        let plain = || {
            fleet.reset(&mut lane, 0, key(1));
            plain_shift(&fleet, &mut lane);
        };
        add(&format!("plain minute, {name}"), shortest(MINUTES, plain));
        let wide = FleetLanes::new(fleet);
        let mut block = wide.new_block();
        let lanes = FleetLanes::LANES;
        for (what, count) in [("one of a block", 1), ("a whole block", lanes)] {
            let active: Vec<bool> = (0..lanes).map(|lane| lane < count).collect();
            (0..lanes).for_each(|lane| wide.reset(&mut block, lane, key(lane)));
            // State goes on from run to run: a shift may be longer than the scenario's.
            let work = || shift(&wide, &mut block, &active);
            add(&format!("minute of {what}, {name}"), shortest(MINUTES * count, work));
        }
        let work = || (0..lanes).for_each(|lane| wide.reset(&mut block, lane, key(lane)));
        add(&format!("reset, {name}"), shortest(lanes, work));
        let mut out = [0.0; FleetLanes::LANES];
        let signals = wide.spec().columns_of(View::Operator);
        let work = || {
            for &signal in &signals {
                black_box(wide.column(&block, signal, &mut out));
            }
        };
        add(&format!("signals before scaling, {name}"), shortest(lanes, work));
    }
    Ok(())
}

/// Measures all parts with each set of instructions and prints a table as CSV.
pub(crate) fn measure() -> Result<String, Box<dyn Error>> {
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    let sets: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| isa.is_present()).collect();
    for &isa in &sets {
        isa::force(isa);
        let mut add = |name: &str, ns: f64| match rows.iter_mut().find(|(row, _)| row == name) {
            Some((_, found)) => found.push(ns),
            None => rows.push((name.to_owned(), vec![ns])),
        };
        functions(&mut add);
        queues(&mut add);
        minutes(&mut add)?;
    }
    let names: Vec<&str> = sets.iter().map(|isa| isa.name()).collect();
    let mut text = format!("part,{}\n", names.join(","));
    for (name, found) in rows {
        let cells: Vec<String> = found.iter().map(|ns| format!("{ns:.1}")).collect();
        let _ = writeln!(text, "\"{name}\",{}", cells.join(","));
    }
    Ok(text)
}
