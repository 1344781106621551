//! Gap repair, exhaustively: a server and a reader of one cell over a link that loses, repeats, reorders and breaks.
//!
//! The real decisions (`CellSub`, `answer`, `DeltaLog`, judging) run over every interleaving of a small world. A
//! set is stood for by the head that it belongs to, as in the full-scale simulation: applying a delta to any other
//! set than the one it starts from makes a set that never was.

use stateright::{Checker, Model, Property};

use super::source::cell;
use crate::distrib::{
    Answer, Cursor, DeltaLog, Retention, SnapshotCause, SnapshotHead, Step, Watch, answer,
};
use crate::mutants::{Mutant, Mutants};
use crate::proxy::{CellSub, SubEvent};
use crate::types::{Incarnation, Revision, Span, Time};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Msg {
    Watch { cursor: Option<Cursor>, full: bool },
    Delta { from: Cursor, to: Cursor, intact: bool },
    Snapshot { at: Cursor, intact: bool },
    Head { at: Cursor },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The server: its head, the oldest revision of its log, and where it believes the reader to be.
    head: Cursor,
    floor: u32,
    sent: Option<Cursor>,
    connected: bool,
    /// The reader, and the head whose set it really has; `None` once that is no head's set.
    sub: CellSub,
    set: Option<Cursor>,
    /// Highest place so far.
    peak: Option<Cursor>,
    /// Messages under way, in no order; those of an ended stream may still arrive on the next.
    net: Vec<Msg>,
    /// Turns of the clock since the reader last moved or something last went wrong.
    turns: u8,
    /// What may still go wrong, so that the world is finite.
    faults: u8,
    changes: u8,
    restores: u8,
    /// What this path has seen, one bit each, for the "sometimes" properties.
    seen: u8,
}

const GAP: u8 = 1;
const BRIDGED: u8 = 2;
const REJECTED: u8 = 4;
const RETENTION_OVER: u8 = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Publish,
    Trim,
    Restore,
    Deliver(usize),
    Repeat(usize),
    Lose(usize),
    Corrupt(usize),
    Disconnect,
    Connect,
    Heartbeat,
    /// The reader's repair timer.
    Retry,
}

struct GapRepair {
    changes: u8,
    faults: u8,
    mutants: Mutants,
    net_max: usize,
}

const INTACT: bool = true;

impl GapRepair {
    fn send(&self, state: &mut State, message: Msg) -> bool {
        // The network is a set: a second copy of a message under way is the same as `Repeat`.
        if let Err(at) = state.net.binary_search(&message) {
            if state.net.len() >= self.net_max {
                return false;
            }
            state.net.insert(at, message);
        }
        true
    }

    /// The server's log, made of its floor and head: an entry for each revision between.
    fn log(state: &State) -> DeltaLog<u32> {
        let start = Cursor::new(state.head.incarnation, Revision(state.floor));
        let mut log = DeltaLog::new(start);
        for rev in state.floor + 1..=state.head.rev.0 {
            log.push(Time::ZERO, Revision(rev), rev);
        }
        log
    }

    fn answer(&self, state: &mut State, watch: Watch) -> bool {
        let log = Self::log(state);
        let head = state.head;
        match answer(head, watch, |rev| log.bridges(rev)) {
            Answer::Resumed | Answer::ServerBehind => self.send(state, Msg::Head { at: head }),
            Answer::Bridge { from } => {
                state.sent = Some(head);
                let from = Cursor::new(head.incarnation, from);
                self.send(state, Msg::Delta { from, to: head, intact: INTACT })
            }
            Answer::Snapshot(cause) => {
                state.sent = Some(head);
                if cause == SnapshotCause::RetentionOver {
                    state.seen |= RETENTION_OVER;
                }
                self.send(state, Msg::Snapshot { at: head, intact: INTACT })
            }
        }
    }

    fn ask(&self, state: &mut State) -> bool {
        let Watch { cursor, full, .. } = state.sub.watch(cell(0));
        self.send(state, Msg::Watch { cursor, full })
    }

    fn deliver(&self, state: &mut State, message: &Msg) -> bool {
        let event = match *message {
            Msg::Watch { cursor, full } => {
                state.sent = cursor;
                return self.answer(state, Watch { cell: cell(0), cursor, full });
            }
            Msg::Delta { from, to, intact } => {
                let step = Step { incarnation: to.incarnation, from: from.rev, to: to.rev };
                let event = state.sub.on_delta(step, intact, Time::ZERO, self.mutants);
                if matches!(event, SubEvent::Applied { .. }) {
                    state.set = (state.set == Some(from) && intact).then_some(to);
                    if matches!(event, SubEvent::Applied { repaired: true, .. }) {
                        state.seen |= BRIDGED;
                    }
                }
                event
            }
            Msg::Snapshot { at, intact } => {
                let head = SnapshotHead { cursor: at, count: 1 };
                let event = state.sub.on_snapshot(head, intact, Time::ZERO, self.mutants);
                if matches!(event, SubEvent::Applied { .. }) {
                    state.set = intact.then_some(at);
                }
                event
            }
            Msg::Head { at } => state.sub.on_head(at, Time::ZERO),
        };
        match event {
            SubEvent::Repair(_) => {
                state.seen |= GAP;
                self.ask(state)
            }
            // Waits for the timer.
            SubEvent::Rejected { .. } => {
                state.seen |= REJECTED;
                true
            }
            _ => true,
        }
    }

    fn publish(&self, state: &mut State) -> bool {
        let from = state.head;
        state.head.rev = from.rev.next();
        state.changes -= 1;
        if !state.connected || state.sent != Some(from) {
            return true;
        }
        let to = state.head;
        state.sent = Some(to);
        self.send(state, Msg::Delta { from, to, intact: INTACT })
    }

    fn connect(&self, state: &mut State) -> bool {
        state.connected = true;
        state.sub.reconnected();
        self.ask(state)
    }

    fn settled(state: &State) -> bool {
        state.sub.cursor() == Some(state.head) && !state.sub.needs_repair()
    }
}

impl Model for GapRepair {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            head: Cursor::new(Incarnation(1), Revision(0)),
            floor: 0,
            sent: None,
            connected: false,
            sub: CellSub::default(),
            set: None,
            peak: None,
            net: Vec::new(),
            turns: 0,
            faults: self.faults,
            changes: self.changes,
            restores: 1,
            seen: 0,
        };
        self.connect(&mut state);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for at in 0..state.net.len() {
            actions.push(Action::Deliver(at));
            if state.faults > 0 {
                actions.extend([Action::Repeat(at), Action::Lose(at), Action::Corrupt(at)]);
            }
        }
        if state.changes > 0 {
            actions.push(Action::Publish);
        }
        if state.faults > 0 {
            actions.push(if state.connected { Action::Disconnect } else { Action::Trim });
        }
        if state.restores > 0 && state.changes > 0 && state.head.rev.0 > 1 {
            actions.push(Action::Restore);
        }
        if !state.connected {
            actions.push(Action::Connect);
        } else if state.net.is_empty() && !Self::settled(state) {
            // Time passes only when nothing is under way: the slowest clock, and so the hardest case.
            if state.sub.needs_repair() {
                actions.push(Action::Retry);
            } else if !self.mutants.has(Mutant::NoHeartbeat) {
                actions.push(Action::Heartbeat);
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let fits = match action.clone() {
            Action::Publish => self.publish(&mut state),
            Action::Trim => {
                state.faults -= 1;
                let mut log = Self::log(&state);
                let rule = Retention { age: Span::ZERO, min_entries: 1, max_entries: 1 };
                log.trim(Time::from_s(1), rule, self.mutants);
                state.floor = log.floor().0;
                true
            }
            Action::Restore => {
                // From a copy that lacks the last change: the revision will be used again.
                state.restores -= 1;
                state.head =
                    Cursor::new(state.head.incarnation.next(), Revision(state.head.rev.0 - 1));
                state.floor = state.head.rev.0;
                state.sent = None;
                state.connected = false;
                true
            }
            Action::Deliver(at) => {
                let message = state.net.remove(at);
                !state.connected || self.deliver(&mut state, &message)
            }
            Action::Repeat(at) => {
                state.faults -= 1;
                let message = state.net[at].clone();
                !state.connected || self.deliver(&mut state, &message)
            }
            Action::Lose(at) => {
                state.faults -= 1;
                state.net.remove(at);
                true
            }
            Action::Corrupt(at) => {
                state.faults -= 1;
                let mut message = state.net.remove(at);
                match &mut message {
                    Msg::Delta { intact, .. } | Msg::Snapshot { intact, .. } => *intact = false,
                    Msg::Watch { .. } | Msg::Head { .. } => return None,
                }
                self.send(&mut state, message)
            }
            Action::Disconnect => {
                state.faults -= 1;
                state.connected = false;
                state.sent = None;
                true
            }
            Action::Connect => self.connect(&mut state),
            Action::Heartbeat => {
                let at = state.head;
                self.send(&mut state, Msg::Head { at })
            }
            Action::Retry => self.ask(&mut state),
        };
        state.turns = match action {
            _ if state.sub.cursor() != last.sub.cursor() || state.faults < last.faults => 0,
            Action::Heartbeat | Action::Retry => (last.turns + 1).min(9),
            _ => last.turns,
        };
        state.peak = state.peak.max(state.sub.cursor());
        (fits && state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I4: the set is the one of its head", |_, state: &State| {
                state.sub.cursor().is_none() || state.set == state.sub.cursor()
            }),
            Property::always("I2: never back", |_, state: &State| state.sub.cursor() == state.peak),
            Property::always("never ahead of what was published", |_, state: &State| {
                state.sub.cursor() <= Some(state.head)
            }),
            // Without this a circle of repairs would pass for "eventually".
            Property::always("I20: two turns of the clock are enough", |_, state: &State| {
                state.turns <= 2
            }),
            Property::eventually("I19: reaches the head", |_, state: &State| {
                state.changes == 0 && Self::settled(state)
            }),
            Property::sometimes("a gap was seen", |_, state: &State| state.seen & GAP != 0),
            Property::sometimes("repaired by delta", |_, state: &State| state.seen & BRIDGED != 0),
            Property::sometimes("retention was over", |_, state: &State| {
                state.seen & RETENTION_OVER != 0
            }),
            Property::sometimes("a check failed", |_, state: &State| state.seen & REJECTED != 0),
            Property::sometimes("a new life of the history", |_, state: &State| {
                state.sub.cursor().is_some_and(|at| at.incarnation == Incarnation(2))
            }),
        ]
    }
}

fn check(changes: u8, faults: u8, mutants: Mutants) -> impl Checker<GapRepair> {
    let model = GapRepair { changes, faults, mutants, net_max: 4 };
    model.checker().threads(1).spawn_bfs().join()
}

#[test]
fn gap_repair_holds_in_every_interleaving() {
    // `ONCALL_MODEL_FAULTS` asks for more faults on one path.
    let faults = std::env::var("ONCALL_MODEL_FAULTS").ok().and_then(|text| text.parse().ok());
    let checker = check(3, faults.unwrap_or(3), Mutants::default());
    checker.assert_properties();
    println!("{} states", checker.unique_state_count());
    assert!(checker.unique_state_count() > 500_000, "{}", checker.unique_state_count());
}

#[test]
fn the_model_finds_what_the_safeguards_prevent() {
    for mutant in
        [Mutant::NonContiguousDelta, Mutant::NoHeartbeat, Mutant::LowerIncarnationAccepted]
    {
        let checker = check(3, 2, Mutants::only(mutant));
        let found = checker.discoveries();
        let bad = ["I2: never back", "I4: the set is the one of its head", "I19: reaches the head"];
        assert!(bad.iter().any(|name| found.contains_key(name)), "{mutant:?} goes unnoticed");
    }
}
