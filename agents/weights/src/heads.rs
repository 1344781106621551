//! The action as independent categorical choices, one for each dial.
//!
//! The first choice of a head keeps the dial (or does not press); over a rule it is what the rule decided. The
//! others are the values of a [`Grid`].

use crate::file::WeightsError;
use crate::math::exp;
use oncall_core::{Dial, DialKind, Spec, Stream, math::ln};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of a head beyond the first, at most: a choice is an `i8`.
const VALUES_MAX: usize = 126;

/// Which values of a dial can be chosen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grid {
    /// The stops of the multi-discrete space, but a count has every whole number of its range: between 16
    /// and 20 instances there is money.
    #[default]
    Stops,
    /// Beyond that, real dials have 21 and logarithmic ones 33 values, equally far apart in the box
    /// space: for policies that know exactly what they want, as a planner does. Between a TTL of 10 and
    /// one of 30 seconds an empty cache may come back or not.
    Fine,
    /// For each dial named a list of values in natural units, of which the first stands where nothing else
    /// is chosen; a dial that is not named is never turned. For worlds of many dials, of which most have
    /// one right place: whoever tries them all at once learns nothing for the noise.
    Menu(BTreeMap<String, Vec<f64>>),
}

impl Grid {
    /// Whether a file may leave it out.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses a menu that names no dial of the world, or values outside a dial's range, twice, none, or
    /// too many.
    pub fn check(&self, spec: &Spec) -> Result<(), WeightsError> {
        let Self::Menu(menu) = self else { return Ok(()) };
        for (name, values) in menu {
            let refused = |found: &dyn std::fmt::Debug, expected: &str| {
                WeightsError::new(format!("grid: {name} = {found:?}: expected {expected}"))
            };
            let Some(dial) = spec.dial(name).map(|place| &spec.dials[place]) else {
                return Err(refused(values, &format!("a dial of {}", spec.world)));
            };
            if values.is_empty() || values.len() > VALUES_MAX {
                return Err(refused(values, &format!("1 to {VALUES_MAX} values")));
            }
            if let Some(value) = values.iter().find(|value| !dial.accepts(**value)) {
                return Err(refused(value, &format!("{}..={}", dial.low, dial.high)));
            }
            if (1..values.len()).any(|place| values[..place].contains(&values[place])) {
                return Err(refused(values, "each value once"));
            }
        }
        Ok(())
    }
}

/// Where each dial's logits lie in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Heads {
    sizes: Vec<usize>,
    /// Natural values of each head's choices after the first.
    values: Vec<Vec<f64>>,
    /// What the first choice of each head is: NaN keeps, 0 does not press; of a menu the first value.
    firsts: Vec<f64>,
    /// Whether they are those of a [`Grid::Menu`].
    is_menu: bool,
    /// Whether the first choice leaves what a rule has decided.
    is_over: bool,
    /// Dials that are buttons.
    presses: Vec<usize>,
}

impl Heads {
    /// One for each dial, with the values of [`Grid::Stops`].
    pub fn of(spec: &Spec) -> Self {
        Self::spread(spec, false)
    }

    /// One for each dial, with the values of a grid; refuses what [`Grid::check`] does. With `is_over` the first
    /// choice is what a rule has decided, and all values of a menu come after it.
    pub fn on(spec: &Spec, grid: &Grid, is_over: bool) -> Result<Self, WeightsError> {
        grid.check(spec)?;
        let Grid::Menu(menu) = grid else {
            return Ok(Self { is_over, ..Self::spread(spec, *grid == Grid::Fine) });
        };
        let heads = spec.dials.iter().map(|dial| match menu.get(dial.name) {
            Some(values) if is_over => (values.clone(), f64::NAN),
            Some(values) => (values[1..].to_vec(), values[0]),
            None => (Vec::new(), idle(dial)),
        });
        let (values, firsts) = heads.unzip();
        Ok(Self { is_menu: true, is_over, presses: presses(spec), ..Self::new(values, firsts) })
    }

    /// Values all over each dial's range.
    fn spread(spec: &Spec, is_fine: bool) -> Self {
        let values = spec.dials.iter().map(|dial| values(dial, is_fine));
        let firsts = spec.dials.iter().map(idle).collect();
        Self { presses: presses(spec), ..Self::new(values.collect(), firsts) }
    }

    /// Heads of these values, after a first choice each.
    ///
    /// # Panics
    ///
    /// If a head has more than 127 choices, or the lengths differ.
    pub fn new(values: Vec<Vec<f64>>, firsts: Vec<f64>) -> Self {
        let sizes: Vec<usize> = values.iter().map(|values| values.len() + 1).collect();
        assert!(sizes.iter().all(|size| *size <= 127) && firsts.len() == sizes.len(), "{sizes:?}");
        Self { sizes, values, firsts, is_menu: false, is_over: false, presses: Vec::new() }
    }

    /// Writes the dials of choices in natural units; NaN keeps. Over a rule, `dials` holds what that decided.
    pub fn decode(&self, stops: &[i8], dials: &mut [f64]) {
        let heads = self.values.iter().zip(&self.firsts);
        for ((dial, &stop), (values, first)) in dials.iter_mut().zip(stops).zip(heads) {
            match stop {
                0 if self.is_over => (),
                0 => *dial = *first,
                _ => *dial = values[stop as usize - 1],
            }
        }
    }

    /// Takes back the presses of choices that stand: what was pressed once is not pressed again.
    pub fn release(&self, stops: &[i8], dials: &mut [f64]) {
        for &dial in self.presses.iter().filter(|&&dial| stops[dial] != 0) {
            dials[dial] = 0.0;
        }
    }

    /// The choices that come nearest to dials in natural units; of two the lower one. NaN is the first.
    pub fn encode(&self, dials: &[f64], stops: &mut [i8]) {
        let heads = self.values.iter().zip(&self.firsts);
        for ((stop, &dial), (values, first)) in stops.iter_mut().zip(dials).zip(heads) {
            // NaN is near to nothing, be it a first choice that keeps or a dial that is to be kept.
            let mut best = (0, Some((first - dial).abs()).filter(|d| !d.is_nan()));
            for (index, value) in values.iter().enumerate() {
                let distance = (value - dial).abs();
                if distance < best.1.unwrap_or(f64::INFINITY) {
                    best = (index + 1, Some(distance));
                }
            }
            *stop = best.0 as i8;
        }
    }

    /// Choices of each head.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Number of heads.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// Logits of a row.
    pub fn logits(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// One choice for each head without chance: the first one (keep) if it has at least half of the
    /// probability, else the median of the others; of a menu the likeliest.
    ///
    /// Not the likeliest of all where values lie side by side: a policy that is about to act often spreads
    /// its wish over neighbouring stops, of which none is as likely as keeping. Those of a menu are few and
    /// in no order.
    pub fn greedy(&self, logits: &[f32], weights: &mut Vec<f32>, stops: &mut [i8]) {
        let mut rest = logits;
        for (stop, &size) in stops.iter_mut().zip(&self.sizes) {
            let (head, tail) = rest.split_at(size);
            rest = tail;
            if self.is_menu {
                let likelier =
                    |best: usize, next: usize| if head[next] > head[best] { next } else { best };
                *stop = (0..size).fold(0, likelier) as i8;
                continue;
            }
            let top = head.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            weights.clear();
            weights.extend(head.iter().map(|logit| exp(logit - top)));
            let others: f32 = weights[1..].iter().sum();
            let acts = others > weights[0];
            *stop = if acts { 1 + pick(&weights[1..], 0.5 * others) as i8 } else { 0 };
        }
    }

    /// Draws a choice for each head, one uniform number each, and gives the logarithm of the
    /// probability of all of them together. `weights` is memory for as many numbers as logits.
    pub fn sample(
        &self,
        logits: &[f32],
        stream: &mut Stream,
        weights: &mut Vec<f32>,
        stops: &mut [i8],
    ) -> f32 {
        // Logarithms of the chosen weights are the logits less their maximum; the product of the
        // sums, at most 127 each, takes one logarithm for every eight heads.
        let (mut chosen, mut sums) = (0.0, 0.0);
        let mut product = 1.0_f64;
        let mut rest = logits;
        for (index, (stop, &size)) in stops.iter_mut().zip(&self.sizes).enumerate() {
            let (head, tail) = rest.split_at(size);
            let top = head.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            weights.clear();
            weights.extend(head.iter().map(|logit| exp(logit - top)));
            let sum: f32 = weights.iter().sum();
            let choice = pick(weights, (stream.uniform() * f64::from(sum)) as f32);
            *stop = choice as i8;
            chosen += f64::from(head[choice] - top);
            product *= f64::from(sum);
            if index % 8 == 7 {
                sums += ln(product);
                product = 1.0;
            }
            rest = tail;
        }
        (chosen - sums - ln(product)) as f32
    }

    /// Logarithm of the probability of given choices.
    pub fn log_prob(&self, logits: &[f32], weights: &mut Vec<f32>, stops: &[i8]) -> f32 {
        let (mut sum, mut rest) = (0.0, logits);
        for (&stop, &size) in stops.iter().zip(&self.sizes) {
            let (head, tail) = rest.split_at(size);
            let top = head.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            weights.clear();
            weights.extend(head.iter().map(|logit| exp(logit - top)));
            sum +=
                f64::from(head[stop as usize] - top) - ln(f64::from(weights.iter().sum::<f32>()));
            rest = tail;
        }
        sum as f32
    }
}

/// Places of the buttons.
fn presses(spec: &Spec) -> Vec<usize> {
    let is_press = |&dial: &usize| spec.dials[dial].kind == DialKind::Press;
    (0..spec.dials.len()).filter(is_press).collect()
}

/// What leaves a dial alone.
fn idle(dial: &Dial) -> f64 {
    if dial.kind == DialKind::Press { 0.0 } else { f64::NAN }
}

/// Values of a dial's choices after the first.
fn values(dial: &Dial, is_fine: bool) -> Vec<f64> {
    /// More whole numbers than this are too many choices.
    const COUNTS_MAX: f64 = 64.0;
    let even = |steps: u32| {
        let place = |step: u32| 2.0 * f64::from(step) / f64::from(steps) - 1.0;
        (0..=steps).map(|step| dial.from_box(place(step))).collect()
    };
    match dial.kind {
        DialKind::Real if is_fine => return even(20),
        DialKind::Log if is_fine => return even(32),
        _ => (),
    }
    if dial.kind == DialKind::Count && dial.high - dial.low < COUNTS_MAX {
        let count = (dial.high - dial.low) as u32;
        return (0..=count).map(|step| dial.low + f64::from(step)).collect();
    }
    dial.stops.to_vec()
}

/// The first index at which the running sum exceeds a point.
fn pick(weights: &[f32], point: f32) -> usize {
    let mut sum = 0.0;
    for (index, weight) in weights.iter().enumerate() {
        sum += weight;
        if point < sum {
            return index;
        }
    }
    // Rounding can put the point onto the sum; the last choice that has any weight takes it.
    weights.iter().rposition(|&weight| weight > 1e-30).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::streams::{EpisodeKey, Generator, Purpose, Split};

    fn heads(sizes: &[usize]) -> Heads {
        let values = sizes.iter().map(|size| (1..*size).map(|i| i as f64).collect()).collect();
        Heads::new(values, vec![f64::NAN; sizes.len()])
    }

    #[test]
    fn choices_are_every_count_and_the_stops_of_other_dials() {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let heads = Heads::of(&spec);
        assert_eq!(heads.sizes(), [41, 3, 8, 13, 2, 6, 3, 2]);
        let mut dials = [9.0; 8];
        heads.decode(&[17, 2, 1, 0, 1, 3, 0, 0], &mut dials);
        assert_eq!(dials[..3], [17.0, 1.0, 0.4]);
        assert!(dials[3].is_nan() && dials[6].is_nan());
        assert_eq!((dials[4], dials[5], dials[7]), (1.0, 0.5, 0.0));
        // A decision that stands is not pressed again; what the other dials say is.
        heads.release(&[17, 2, 1, 0, 1, 3, 0, 0], &mut dials);
        assert_eq!((dials[0], dials[4], dials[5], dials[7]), (17.0, 0.0, 0.5, 0.0));
        dials[7] = 1.0;
        heads.release(&[0; 8], &mut dials);
        assert_eq!(dials[7], 1.0, "a press of somebody else");
        let mut stops = [9; 8];
        heads.encode(&[17.4, 0.0, f64::NAN, 599.0, 0.0, 0.4, 1.0, 1.0], &mut stops);
        assert_eq!(stops, [17, 1, 0, 12, 0, 3, 2, 1]);
        for (head, dial) in spec.dials.iter().enumerate() {
            assert!(heads.values[head].iter().all(|&value| dial.accepts(value)), "{}", dial.name);
        }
    }

    #[test]
    fn a_fine_grid_spans_the_dials_in_even_steps() {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let heads = Heads::on(&spec, &Grid::Fine, false).unwrap();
        assert_eq!(heads.sizes(), [41, 3, 22, 34, 2, 22, 3, 2]);
        for (head, dial) in spec.dials.iter().enumerate() {
            let values = &heads.values[head];
            assert!(values.iter().all(|&value| dial.accepts(value)), "{}", dial.name);
            assert!(values.is_sorted_by(|a, b| a < b), "{}", dial.name);
            if matches!(dial.kind, DialKind::Real | DialKind::Log) {
                assert_eq!((values[0], values[values.len() - 1]), (dial.low, dial.high));
                let gaps: Vec<f64> =
                    values.windows(2).map(|w| dial.to_box(w[1]) - dial.to_box(w[0])).collect();
                assert!(gaps.iter().all(|gap| (gap - gaps[0]).abs() < 1e-9), "{}", dial.name);
            }
        }
    }

    fn menu(entries: &[(&str, &[f64])]) -> Grid {
        Grid::Menu(
            entries.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect(),
        )
    }

    #[test]
    fn a_menu_has_its_values_and_leaves_the_other_dials_alone() {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let grid = menu(&[
            ("cache_ttl_s", &[60.0, 5.0, 600.0]),
            ("feature", &[1.0]),
            ("rollback", &[0.0, 1.0]),
        ]);
        let heads = Heads::on(&spec, &grid, false).unwrap();
        assert_eq!(heads.sizes(), [1, 1, 1, 3, 1, 1, 1, 2]);
        let mut dials = [9.0; 8];
        heads.decode(&[0, 0, 0, 2, 0, 0, 0, 1], &mut dials);
        // Nothing turns what is not named, or presses it.
        assert!([0, 1, 2, 5].iter().all(|&dial: &usize| dials[dial].is_nan()), "{dials:?}");
        assert_eq!([dials[3], dials[4], dials[6], dials[7]], [600.0, 0.0, 1.0, 1.0]);
        let mut stops = [9; 8];
        heads.encode(&[17.0, 1.0, 0.5, 20.0, 0.0, 0.4, 1.0, 0.0], &mut stops);
        assert_eq!(stops, [0, 0, 0, 1, 0, 0, 0, 0]);
        heads.encode(&[17.0, 1.0, 0.5, f64::NAN, 0.0, 0.4, 1.0, 1.0], &mut stops);
        assert_eq!(stops, [0, 0, 0, 0, 0, 0, 0, 1]);
        // A head of one choice is certain, and costs no chance.
        let logits = [7.0, -3.0, 0.5, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 4.0];
        let found = heads.sample(&logits, &mut stream(0), &mut Vec::new(), &mut stops);
        assert!((f64::from(found) + 3_f64.ln() + 2_f64.ln()).abs() < 1e-6, "{found}");
        // The likeliest, be it the first or not.
        heads.greedy(&logits, &mut Vec::new(), &mut stops);
        assert_eq!(stops, [0, 0, 0, 0, 0, 0, 0, 0]);
        let logits = [7.0, -3.0, 0.5, 0.4, 0.3, 0.5, 1.0, 2.0, 3.0, 4.0, 4.5];
        heads.greedy(&logits, &mut Vec::new(), &mut stops);
        assert_eq!(stops, [0, 0, 0, 2, 0, 0, 0, 1]);
        let text = serde_json::to_string(&grid).unwrap();
        assert_eq!(serde_json::from_str::<Grid>(&text).unwrap(), grid);
        assert_eq!(serde_json::to_string(&Grid::Fine).unwrap(), "\"fine\"");
    }

    #[test]
    fn over_a_rule_the_first_choice_is_the_rules() {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let grid = menu(&[("cache_ttl_s", &[60.0, 5.0]), ("feature", &[1.0])]);
        let heads = Heads::on(&spec, &grid, true).unwrap();
        assert_eq!(heads.sizes(), [1, 1, 1, 3, 1, 1, 2, 1]);
        let rule = [12.0, 1.0, f64::NAN, 30.0, 0.0, 0.5, 0.0, 1.0];
        let decode = |stops: [i8; 8]| {
            let mut dials = rule;
            heads.decode(&stops, &mut dials);
            dials.map(f64::to_bits)
        };
        assert_eq!(decode([0; 8]), rule.map(f64::to_bits));
        let mut turned = rule;
        (turned[3], turned[6]) = (60.0, 1.0);
        assert_eq!(decode([0, 0, 0, 1, 0, 0, 1, 0]), turned.map(f64::to_bits));
        assert_eq!(Heads::on(&spec, &Grid::Stops, true).unwrap().sizes(), Heads::of(&spec).sizes());
    }

    #[test]
    fn wrong_menus_are_named() {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let error = |values: &[f64], name| {
            Heads::on(&spec, &menu(&[(name, values)]), false).unwrap_err().to_string()
        };
        let of = |values: &[f64]| error(values, "shed_share");
        assert_eq!(error(&[1.0], "wages"), "grid: wages = [1.0]: expected a dial of fleet");
        assert_eq!(of(&[0.5, 2.0]), "grid: shed_share = 2.0: expected 0..=1");
        assert!(of(&[f64::NAN]).starts_with("grid: shed_share = NaN: expected"));
        assert_eq!(of(&[]), "grid: shed_share = []: expected 1 to 126 values");
        assert_eq!(
            of(&[0.5, 0.0, 0.5]),
            "grid: shed_share = [0.5, 0.0, 0.5]: expected each value once"
        );
    }

    const LOGITS: [f32; 6] = [0.5, -1.0, 2.0, 300.0, 301.0, -400.0];

    fn stream(minute: u64) -> Stream {
        EpisodeKey::new(3, 0, Split::Train, Generator::Pcg).stream(Purpose::Policy, minute)
    }

    fn probabilities(head: &[f32]) -> Vec<f64> {
        let weights: Vec<f64> = head.iter().map(|&x| f64::from(x - 301.0).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    #[test]
    fn draws_follow_the_distribution_and_know_their_probability() {
        let heads = heads(&[3, 3]);
        let known = [probabilities(&LOGITS[..3]), probabilities(&LOGITS[3..])];
        let (mut counts, mut weights, mut stops) = ([[0_u32; 3]; 2], Vec::new(), [0; 2]);
        let n = 100_000;
        for minute in 0..n {
            let log_prob = heads.sample(&LOGITS, &mut stream(minute), &mut weights, &mut stops);
            let chosen = [stops[0] as usize, stops[1] as usize];
            let expected = known[0][chosen[0]].ln() + known[1][chosen[1]].ln();
            assert!((f64::from(log_prob) - expected).abs() < 1e-5, "{log_prob} {expected}");
            let again = heads.log_prob(&LOGITS, &mut weights, &stops);
            assert!((log_prob - again).abs() < 1e-5, "{log_prob} {again}");
            counts[0][chosen[0]] += 1;
            counts[1][chosen[1]] += 1;
        }
        for (counts, known) in counts.iter().flatten().zip(known.iter().flatten()) {
            let (mean, variance) = (n as f64 * known, n as f64 * known * (1.0 - known));
            assert!((f64::from(*counts) - mean).abs() <= 5.0 * variance.sqrt() + 0.01);
        }
    }

    #[test]
    fn many_heads_do_not_overflow() {
        let heads = heads(&[100; 400]);
        let (mut weights, mut stops) = (Vec::new(), [0; 400]);
        let log_prob = heads.sample(&vec![0.0; 40_000], &mut stream(0), &mut weights, &mut stops);
        assert!((f64::from(log_prob) + 400.0 * 100_f64.ln()).abs() < 1e-3, "{log_prob}");
    }

    /// By hand: keeping has 0.4 against three stops of 0.2; then half exactly; then a lone choice; then
    /// a clear wish for the second of two.
    #[test]
    fn greedy_keeps_or_takes_the_median_of_the_others() {
        let logs = [0.4, 0.2, 0.2, 0.2, 0.5, 0.25, 0.25, 7.0, 0.1, 0.2, 0.7].map(f32::ln);
        let (mut weights, mut stops) = (Vec::new(), [9; 4]);
        heads(&[4, 3, 1, 3]).greedy(&logs, &mut weights, &mut stops);
        assert_eq!(stops, [2, 0, 0, 2]);
    }

    #[test]
    fn a_point_on_the_sum_takes_the_last_with_weight() {
        assert_eq!(pick(&[1.0, 2.0, 0.0], 3.0), 1);
        assert_eq!(pick(&[1.0, 2.0], 1.0), 1);
        assert_eq!(pick(&[1.0, 2.0], 0.0), 0);
    }
}
