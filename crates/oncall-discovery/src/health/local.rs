//! Health on the node: the agent's own checks of a process beside it.

use serde::{Deserialize, Serialize};

use super::dependency::{DependencyMode, Readiness};
use super::probe::{Opinion, ProbeRecord, Thresholds};
use crate::mutants::{Mutant, Mutants};
use crate::types::{Span, Time};

/// What the agent checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LocalSignal {
    /// Whether the process has come up.
    Startup(bool),
    /// Whether it could serve.
    Readiness(Readiness),
    /// Whether it can still be saved: no dependency has a part in this (R114).
    Liveness(bool),
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LocalAction {
    /// Tell the decider that the process is up, and whether it is ready.
    Report {
        /// Through startup.
        started: bool,
        /// Ready, as far as the dial looks.
        ready: bool,
    },
    /// Restart the process.
    Restart,
}

/// Rules of the local checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LocalRules {
    /// Runs that change readiness.
    pub readiness: Thresholds,
    /// Failed liveness checks in a row that restart.
    pub liveness_failures: u8,
    /// How long startup may take before liveness counts all the same.
    pub startup_max: Span,
    /// Which dependencies count in readiness.
    pub mode: DependencyMode,
}

/// Local health of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LocalHealth {
    began: Time,
    started: bool,
    readiness: ProbeRecord,
    liveness_failed: u8,
    mutants: Mutants,
}

impl LocalHealth {
    /// Of a process that began now.
    pub fn new(now: Time) -> Self {
        Self {
            began: now,
            started: false,
            readiness: ProbeRecord::NEW,
            liveness_failed: 0,
            mutants: Mutants::default(),
        }
    }

    /// The same with safeguards taken out, for tests.
    #[must_use]
    pub fn with_mutants(self, mutants: Mutants) -> Self {
        Self { mutants, ..self }
    }

    /// Whether it is through startup.
    pub fn started(&self) -> bool {
        self.started
    }

    /// Takes a check's result. Only liveness restarts, and only after startup or its deadline; readiness never
    /// does, for a broken dependency would then restart the whole fleet (R171).
    pub fn check(
        &mut self,
        now: Time,
        signal: LocalSignal,
        rules: &LocalRules,
    ) -> Option<LocalAction> {
        match signal {
            LocalSignal::Startup(ok) => {
                let first = ok && !self.started;
                self.started |= ok;
                first.then(|| self.report())
            }
            LocalSignal::Readiness(found) => {
                let changed = self.readiness.record(found.passes(rules.mode), rules.readiness)?;
                if changed == Opinion::Down && self.mutants.has(Mutant::ReadinessRestarts) {
                    *self = Self { mutants: self.mutants, ..Self::new(now) };
                    return Some(LocalAction::Restart);
                }
                Some(self.report())
            }
            LocalSignal::Liveness(true) => {
                self.liveness_failed = 0;
                None
            }
            LocalSignal::Liveness(false) => {
                // A slow start is no reason to start again (R111).
                if !self.started && now < self.began.after(rules.startup_max) {
                    return None;
                }
                self.liveness_failed += 1;
                if self.liveness_failed < rules.liveness_failures.max(1) {
                    return None;
                }
                *self = Self { mutants: self.mutants, ..Self::new(now) };
                Some(LocalAction::Restart)
            }
        }
    }

    fn report(&self) -> LocalAction {
        LocalAction::Report {
            started: self.started,
            ready: self.started && self.readiness.opinion() == Opinion::Up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: LocalRules = LocalRules {
        readiness: Thresholds { failures: 2, successes: 1 },
        liveness_failures: 3,
        startup_max: Span::from_s(60),
        mode: DependencyMode::Critical,
    };

    const UP: Option<LocalAction> = Some(LocalAction::Report { started: true, ready: false });
    const READY: Option<LocalAction> = Some(LocalAction::Report { started: true, ready: true });

    #[test]
    fn startup_holds_liveness_back() {
        let mut health = LocalHealth::new(Time::ZERO);
        for s in 0..60 {
            assert_eq!(health.check(Time::from_s(s), LocalSignal::Liveness(false), &RULES), None);
        }
        let mut stuck = health;
        let restarts = (60..63)
            .map(|s| stuck.check(Time::from_s(s), LocalSignal::Liveness(false), &RULES))
            .collect::<Vec<_>>();
        assert_eq!(restarts, [None, None, Some(LocalAction::Restart)], "startup took too long");
        assert_eq!(stuck, LocalHealth::new(Time::from_s(62)), "and protects the next start");

        let up = health.check(Time::from_s(59), LocalSignal::Startup(true), &RULES);
        assert_eq!(up, UP);
        assert_eq!(health.check(Time::from_s(60), LocalSignal::Startup(true), &RULES), None);
    }

    fn a_broken_dependency_never_restarts(mut health: LocalHealth) {
        let mut check = |signal| health.check(Time::from_s(1), signal, &RULES);
        check(LocalSignal::Startup(true));
        assert_eq!(check(LocalSignal::Readiness(Readiness::FINE)), READY);
        let broken = Readiness { critical: false, ..Readiness::FINE };
        assert_eq!(check(LocalSignal::Readiness(broken)), None);
        assert_eq!(check(LocalSignal::Readiness(broken)), UP);
        for _ in 0..1_000 {
            assert_eq!(check(LocalSignal::Readiness(broken)), None);
            assert_eq!(check(LocalSignal::Liveness(true)), None);
        }
        assert_eq!(check(LocalSignal::Readiness(Readiness::FINE)), READY);
    }

    #[test]
    fn readiness_takes_traffic_and_never_restarts() {
        a_broken_dependency_never_restarts(LocalHealth::new(Time::ZERO));
    }

    #[test]
    fn a_restart_on_readiness_is_caught() {
        let mutant =
            LocalHealth::new(Time::ZERO).with_mutants(Mutants::only(Mutant::ReadinessRestarts));
        let result = std::panic::catch_unwind(|| a_broken_dependency_never_restarts(mutant));
        assert!(result.is_err());
    }

    #[test]
    fn liveness_needs_a_run_of_failures() {
        let mut health = LocalHealth::new(Time::ZERO);
        let mut check = |signal| health.check(Time::from_s(1), signal, &RULES);
        check(LocalSignal::Startup(true));
        for ok in [false, false, true, false, false] {
            assert_eq!(check(LocalSignal::Liveness(ok)), None);
        }
        assert_eq!(check(LocalSignal::Liveness(false)), Some(LocalAction::Restart));
    }
}
