//! The state machine of a row: what a step does with it, and what follows the end of an episode.
//!
//! | status before the step | next-step | same-step | disabled |
//! |---|---|---|---|
//! | never reset | refuse | refuse | refuse |
//! | running | play | play | play |
//! | over | begin anew | begin anew (only after a restore) | refuse |
//! | *a played row ends* | becomes over | begins anew at once | becomes over |

/// What happens when an episode ends; the three modes of Gymnasium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Autoreset {
    /// The next step begins a new episode: its action is ignored, the reward is 0, no flag is set.
    #[default]
    NextStep,
    /// The ending step begins a new episode and returns its first observation; the last one of the
    /// old episode goes to the final observations.
    SameStep,
    /// The row must be reset by the caller; stepping it is an error.
    Disabled,
}

impl Autoreset {
    const ALL: [Autoreset; 3] = [Autoreset::NextStep, Autoreset::SameStep, Autoreset::Disabled];

    /// `next_step`, `same_step` or `disabled`.
    pub fn name(self) -> &'static str {
        match self {
            Autoreset::NextStep => "next_step",
            Autoreset::SameStep => "same_step",
            Autoreset::Disabled => "disabled",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// What a step does with a row.
    #[inline]
    pub(crate) fn before_step(self, status: Status) -> Turn {
        match (status, self) {
            (Status::Running, _) => Turn::Play,
            (Status::Over, Autoreset::NextStep | Autoreset::SameStep) => Turn::Begin,
            (Status::Over, Autoreset::Disabled) | (Status::Unseeded, _) => Turn::Refuse,
        }
    }

    /// Whether a row whose episode has just ended begins a new one in the same step.
    #[inline]
    pub(crate) fn begins_at_end(self) -> bool {
        self == Autoreset::SameStep
    }
}

/// Where a row stands between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Status {
    /// Never reset; it has no state.
    #[default]
    Unseeded,
    /// In an episode.
    Running,
    /// Its episode has ended and it still shows the last minute.
    Over,
}

/// Whether all rows are in an episode. Without a way out of the loop, which becomes vector instructions.
pub(crate) fn all_run(statuses: &[Status]) -> bool {
    let mut all = true;
    for &status in statuses {
        all &= status == Status::Running;
    }
    all
}

/// What a step does with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Plays the action.
    Play,
    /// Ignores the action and begins a new episode.
    Begin,
    /// Refuses the whole step.
    Refuse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        use Autoreset::{Disabled, NextStep, SameStep};
        use Status::{Over, Running, Unseeded};
        for (mode, status, turn) in [
            (NextStep, Unseeded, Turn::Refuse),
            (NextStep, Running, Turn::Play),
            (NextStep, Over, Turn::Begin),
            (SameStep, Unseeded, Turn::Refuse),
            (SameStep, Running, Turn::Play),
            (SameStep, Over, Turn::Begin),
            (Disabled, Unseeded, Turn::Refuse),
            (Disabled, Running, Turn::Play),
            (Disabled, Over, Turn::Refuse),
        ] {
            assert_eq!(mode.before_step(status), turn, "{mode:?} {status:?}");
        }
        assert_eq!(Autoreset::ALL.map(Autoreset::begins_at_end), [false, true, false]);
    }

    #[test]
    fn names_round_trip() {
        for mode in Autoreset::ALL {
            assert_eq!(Autoreset::from_name(mode.name()), Some(mode));
        }
        assert_eq!(Autoreset::from_name("never"), None);
    }
}
