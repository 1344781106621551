//! What an episode's minutes say about the incident: pages, and how long it took to mitigate.
//!
//! * A **page** is a rising edge of the signal `page`: a minute in which the pager rings and did not
//!   ring in the minute before. No pager rings before the first minute.
//! * An **incident** begins in the first minute with a burn above 1. It is mitigated by the first ten
//!   minutes in a row, after its beginning, with a burn of at most 1. **Minutes to mitigate** counts
//!   from its first minute to the last one before those ten, both included: an incident of a single
//!   bad minute took 1. Where the episode ends before ten quiet minutes are complete, it counts to the
//!   end of the episode and is marked unmitigated. What burns after the mitigation does not count.

/// Burn above which the error budget would not last its month.
const BURN_MAX: f64 = 1.0;

/// Quiet minutes in a row that end an incident.
pub const QUIET_MIN: u32 = 10;

/// Follows one episode, minute by minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Incident {
    minutes: u32,
    pages: u32,
    pages_now: bool,
    /// Minute in which it began.
    began: Option<u32>,
    /// Quiet minutes in a row since the last burning one.
    quiet: u32,
    to_mitigate: Option<u32>,
}

/// How the incident of an episode went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rising edges of the pager.
    pub pages: u32,
    /// Minutes to mitigate; `None` if the burn was never above 1.
    pub minutes_to_mitigate: Option<u32>,
    /// Whether the episode ended before ten quiet minutes in a row.
    pub unmitigated: bool,
}

impl Incident {
    /// Takes in a played minute.
    #[inline]
    pub fn minute(&mut self, page: bool, burn: f64) {
        self.pages += u32::from(page && !self.pages_now);
        self.pages_now = page;
        let burns = burn > BURN_MAX;
        if burns && self.began.is_none() {
            self.began = Some(self.minutes);
        }
        self.quiet = if burns { 0 } else { self.quiet + 1 };
        self.minutes += 1;
        if let (Some(began), None, QUIET_MIN..) = (self.began, self.to_mitigate, self.quiet) {
            self.to_mitigate = Some(self.minutes - self.quiet - began);
        }
    }

    /// The outcome if the episode ended now.
    pub fn outcome(&self) -> Outcome {
        let to_end = self.began.map(|began| self.minutes - began);
        Outcome {
            pages: self.pages,
            minutes_to_mitigate: self.to_mitigate.or(to_end),
            unmitigated: self.began.is_some() && self.to_mitigate.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One character a minute: `.` quiet, `*` burning, `p` burning with the pager ringing, `q` quiet
    /// with the pager ringing.
    fn outcome(minutes: &str) -> (u32, Option<u32>, bool) {
        let mut incident = Incident::default();
        for minute in minutes.chars() {
            let burn = if "*p".contains(minute) { 1.000_001 } else { 1.0 };
            incident.minute("pq".contains(minute), burn);
        }
        let Outcome { pages, minutes_to_mitigate, unmitigated } = incident.outcome();
        (pages, minutes_to_mitigate, unmitigated)
    }

    #[test]
    fn no_burn_no_incident() {
        assert_eq!(outcome(""), (0, None, false));
        assert_eq!(outcome(&".".repeat(60)), (0, None, false));
    }

    #[test]
    fn counts_from_the_first_burn_to_the_last_before_ten_quiet_minutes() {
        assert_eq!(outcome("....*.........."), (0, Some(1), false));
        assert_eq!(outcome("....***.........."), (0, Some(3), false));
        // Nine quiet minutes are not ten.
        assert_eq!(outcome("..*.........*.........."), (0, Some(11), false));
        assert_eq!(outcome("..*..........*.........."), (0, Some(1), false));
        // Quiet minutes before the incident do not mitigate it.
        assert_eq!(outcome("............**.........."), (0, Some(2), false));
    }

    #[test]
    fn a_second_incident_does_not_count() {
        let text = format!("**{}*****", ".".repeat(10));
        assert_eq!(outcome(&text), (0, Some(2), false));
    }

    #[test]
    fn without_ten_quiet_minutes_it_counts_to_the_end() {
        assert_eq!(outcome("...**"), (0, Some(2), true));
        assert_eq!(outcome("...**........."), (0, Some(11), true));
        assert_eq!(outcome("...**.........."), (0, Some(2), false));
        assert_eq!(outcome("*"), (0, Some(1), true));
    }

    #[test]
    fn pages_are_rising_edges() {
        assert_eq!(outcome("ppp").0, 1);
        assert_eq!(outcome("qq.qq*p").0, 3);
        assert_eq!(outcome(".p.").0, 1);
    }
}
