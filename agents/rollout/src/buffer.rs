//! Storage of a roll-out.
//!
//! Row-major, then by step: what a row did lies together, so that threads fill disjoint parts and the
//! advantages of a row are one walk from its end to its start.

/// How a step left its episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// It goes on.
    #[default]
    Going,
    /// The world ended it: nothing comes after.
    Terminated,
    /// Time is up, although the world would go on.
    Truncated,
}

impl End {
    /// From the two flags of a step; termination wins where both are set.
    pub fn new(terminated: bool, truncated: bool) -> Self {
        match (terminated, truncated) {
            (true, _) => End::Terminated,
            (false, true) => End::Truncated,
            (false, false) => End::Going,
        }
    }

    /// Whether the episode is over.
    pub fn is_end(self) -> bool {
        self != End::Going
    }
}

/// Size of a roll-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Environments.
    pub rows: usize,
    /// Decisions of each.
    pub steps: usize,
    /// Numbers in an observation.
    pub observation: usize,
    /// Numbers that the critic is told besides.
    pub context: usize,
    /// Dials in an action.
    pub heads: usize,
}

impl Shape {
    /// Decisions of all rows.
    pub fn len(self) -> usize {
        self.rows * self.steps
    }

    /// Whether it holds no decision.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// What `rows` environments saw, did and got in `steps` decisions. Sample `row * steps + step`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    /// Its size.
    pub shape: Shape,
    /// `len * observation`: what was seen before the decision.
    pub observations: Vec<f32>,
    /// `len * context`: what the critic was told besides.
    pub contexts: Vec<f32>,
    /// `len * heads`: index of the stop that each dial was turned to.
    pub stops: Vec<i8>,
    /// `len`: logarithm of the probability that the policy gave to the decision.
    pub log_probs: Vec<f32>,
    /// `len`: the critic's value of the observation.
    pub values: Vec<f32>,
    /// `len`: the critic's value of what the step led to. Where an episode ended this is its own last
    /// observation, not the first of the next episode.
    pub next_values: Vec<f32>,
    /// `len`: as the environment gave them, not scaled.
    pub rewards: Vec<f64>,
    /// `len`.
    pub ends: Vec<End>,
}

/// The samples of some neighbouring rows, to be filled.
#[derive(Debug)]
pub struct Part<'a> {
    /// Size of this part.
    pub shape: Shape,
    /// See [`Rollout::observations`].
    pub observations: &'a mut [f32],
    /// See [`Rollout::contexts`].
    pub contexts: &'a mut [f32],
    /// See [`Rollout::stops`].
    pub stops: &'a mut [i8],
    /// See [`Rollout::log_probs`].
    pub log_probs: &'a mut [f32],
    /// See [`Rollout::values`].
    pub values: &'a mut [f32],
    /// See [`Rollout::next_values`].
    pub next_values: &'a mut [f32],
    /// See [`Rollout::rewards`].
    pub rewards: &'a mut [f64],
    /// See [`Rollout::ends`].
    pub ends: &'a mut [End],
}

impl Rollout {
    /// All zero.
    pub fn new(shape: Shape) -> Self {
        let len = shape.len();
        Self {
            shape,
            observations: vec![0.0; len * shape.observation],
            contexts: vec![0.0; len * shape.context],
            stops: vec![0; len * shape.heads],
            log_probs: vec![0.0; len],
            values: vec![0.0; len],
            next_values: vec![0.0; len],
            rewards: vec![0.0; len],
            ends: vec![End::Going; len],
        }
    }

    /// Cuts it into parts of these numbers of rows.
    ///
    /// # Panics
    ///
    /// If they add up to more rows than there are.
    pub fn parts(&mut self, rows: &[usize]) -> Vec<Part<'_>> {
        let mut rest = Part {
            shape: self.shape,
            observations: &mut self.observations,
            contexts: &mut self.contexts,
            stops: &mut self.stops,
            log_probs: &mut self.log_probs,
            values: &mut self.values,
            next_values: &mut self.next_values,
            rewards: &mut self.rewards,
            ends: &mut self.ends,
        };
        rows.iter().map(|&rows| rest.cut(rows)).collect()
    }
}

#[expect(clippy::mut_mut, reason = "shortens the slice in place")]
fn cut<'a, T>(slice: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (head, tail) = std::mem::take(slice).split_at_mut(len);
    *slice = tail;
    head
}

impl<'a> Part<'a> {
    /// Takes the first rows out.
    fn cut(&mut self, rows: usize) -> Part<'a> {
        assert!(rows <= self.shape.rows, "{rows} rows of {}", self.shape.rows);
        self.shape.rows -= rows;
        let shape = Shape { rows, ..self.shape };
        let len = shape.len();
        Part {
            shape,
            observations: cut(&mut self.observations, len * shape.observation),
            contexts: cut(&mut self.contexts, len * shape.context),
            stops: cut(&mut self.stops, len * shape.heads),
            log_probs: cut(&mut self.log_probs, len),
            values: cut(&mut self.values, len),
            next_values: cut(&mut self.next_values, len),
            rewards: cut(&mut self.rewards, len),
            ends: cut(&mut self.ends, len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_rows_in_order() {
        let shape = Shape { rows: 5, steps: 3, observation: 2, context: 1, heads: 4 };
        let mut rollout = Rollout::new(shape);
        for (index, part) in rollout.parts(&[2, 0, 3]).into_iter().enumerate() {
            assert_eq!(part.observations.len(), part.shape.len() * 2);
            assert_eq!(part.stops.len(), part.shape.len() * 4);
            part.rewards.fill(index as f64);
            part.ends.fill(End::new(index == 2, true));
        }
        let rows = |row: usize| rollout.rewards[row * 3];
        assert_eq!([0, 1, 2, 3, 4].map(rows), [0.0, 0.0, 2.0, 2.0, 2.0]);
        assert_eq!((rollout.ends[5], rollout.ends[6]), (End::Truncated, End::Terminated));
        assert!(!rollout.shape.is_empty());
    }

    #[test]
    #[should_panic(expected = "3 rows of 1")]
    fn more_rows_than_there_are() {
        let shape = Shape { rows: 2, steps: 3, observation: 1, context: 0, heads: 1 };
        Rollout::new(shape).parts(&[1, 3]);
    }

    #[test]
    fn termination_wins() {
        assert_eq!(End::new(true, true), End::Terminated);
        assert_eq!(End::new(false, false), End::Going);
        assert!(End::Truncated.is_end() && !End::Going.is_end());
    }
}
