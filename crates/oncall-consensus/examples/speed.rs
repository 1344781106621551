//! What a group costs: a decided entry, an idle tick, a heartbeat, a clone. Medians of interleaved rounds.

use std::hint::black_box;
use std::time::Instant;

use oncall_consensus::{Config, Fence, Message, Output, Replica, Time};

/// As big as a catalog command: an instance, a generation, a state.
type Command = [u64; 3];

struct Group {
    now: Time,
    members: Vec<Replica<Command, u64>>,
    post: Vec<Message<Command, u64>>,
    out: Output<Command, u64>,
    applied: u64,
}

impl Group {
    fn new(replicas: u8) -> Self {
        let start = |id| match Replica::new(Config::new(id, replicas, 7), 0) {
            Ok(replica) => replica,
            Err(error) => panic!("{error}"),
        };
        let members = (0..replicas).map(start).collect();
        let mut group = Self { now: 0, members, post: Vec::new(), out: Output::new(), applied: 0 };
        group.members[0].campaign(0, &mut group.out);
        group.deliver();
        assert!(group.members[0].barrier_committed().is_some());
        group
    }

    /// Delivers everything at once, as a network without delay would.
    fn deliver(&mut self) {
        self.post.append(&mut self.out.messages);
        let mut n = 0;
        while n < self.post.len() {
            let letter = self.post[n].clone();
            n += 1;
            let to = usize::from(letter.to);
            if let Err(error) = self.members[to].receive(self.now, letter, &mut self.out) {
                panic!("{error}");
            }
            if let Some((first, last)) = self.out.committed {
                for entry in self.members[to].entries(first, last) {
                    self.applied += entry.command().map_or(0, |command| command[0]);
                }
            }
            self.post.append(&mut self.out.messages);
        }
        self.post.clear();
    }

    /// Decides `entries` entries, `batch` at a time; every replica compacts after each 1,000.
    fn decide(&mut self, entries: u64, batch: u64) {
        for n in 0..entries / batch {
            self.now += u64::from(n % 100 == 0);
            let commands = (0..batch).map(|at| [1, n, at]).collect::<Vec<_>>();
            if let Err(refusal) =
                self.members[0].propose_all(self.now, commands, Fence::None, &mut self.out)
            {
                panic!("{refusal}");
            }
            self.deliver();
            if n * batch % 1_000 < batch {
                self.compact();
            }
        }
    }

    fn compact(&mut self) {
        for member in &mut self.members {
            let index = member.commit_index();
            if member.snapshot().is_none_or(|snapshot| snapshot.index < index)
                && let Err(error) = member.compact(index, self.applied, 100, &mut self.out)
            {
                panic!("{error}");
            }
        }
    }

    fn tick(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.now += 1;
            for id in 0..self.members.len() {
                self.members[id].tick(self.now, &mut self.out);
                if !self.out.messages.is_empty() {
                    self.deliver();
                }
            }
        }
    }
}

impl Group {
    /// Like `tick`, but jumps from deadline to deadline.
    fn wait(&mut self, ticks: u64) {
        let until = self.now + ticks;
        while let Some(id) = (0..self.members.len()).min_by_key(|&id| self.members[id].deadline()) {
            let deadline = self.members[id].deadline();
            if deadline > until {
                break;
            }
            self.now = deadline;
            self.members[id].tick(deadline, &mut self.out);
            self.deliver();
        }
        self.now = until;
    }
}

fn ns_per(count: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

fn main() {
    const ROUNDS: usize = 15;
    let names = [
        "decided entry, 3 replicas, one at a time",
        "decided entry, 3 replicas, 20 at a time",
        "decided entry, 5 replicas, one at a time",
        "idle tick of one replica",
        "simulated second of an idle group of 3, ticks of 1 ms",
        "simulated second of an idle group of 3, ticks at deadlines",
        "clone of a group of 3 with 1,000 entries each",
    ];
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let (mut three, mut batched, mut five) = (Group::new(3), Group::new(3), Group::new(5));
    let mut idle = Group::new(3);
    let mut full = Group::new(3);
    full.decide(999, 1);
    for _ in 0..ROUNDS {
        times[0].push(ns_per(20_000, || three.decide(20_000, 1)));
        times[1].push(ns_per(20_000, || batched.decide(20_000, 20)));
        times[2].push(ns_per(20_000, || five.decide(20_000, 1)));
        times[3].push(ns_per(1_000_000, || {
            let deadline = idle.members[1].deadline();
            for _ in 0..1_000_000 {
                idle.members[1].tick(black_box(deadline - 1), &mut idle.out);
            }
        }));
        idle = Group::new(3);
        times[4].push(ns_per(100, || idle.tick(100_000)));
        times[5].push(ns_per(100, || idle.wait(100_000)));
        times[6].push(ns_per(100, || {
            for _ in 0..100 {
                black_box(full.members.clone());
            }
        }));
    }
    for (name, mut times) in names.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        println!("{:>12.1} ns  {name}", times[ROUNDS / 2]);
    }
    assert!(three.applied > 0 && five.applied > 0);
}
