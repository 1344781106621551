//! Running mean and spread.

use crate::buffer::End;

/// Count, mean and sum of squared deviations of columns, updated batch by batch (Chan, Golub, Le
/// Veque 1983). Sums run in the order of the rows, so the bits do not depend on who played them.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// Rows seen.
    pub count: f64,
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Sum of squared deviations from the mean, of each column.
    pub squares: Vec<f64>,
}

impl Moments {
    /// Nothing seen yet.
    pub fn new(width: usize) -> Self {
        Self { count: 0.0, mean: vec![0.0; width], squares: vec![0.0; width] }
    }

    /// Takes in rows of `width` numbers.
    pub fn observe<T: Copy + Into<f64>>(&mut self, rows: &[T]) {
        let width = self.mean.len();
        let count = (rows.len() / width) as f64;
        if count == 0.0 {
            return;
        }
        let total = self.count + count;
        for column in 0..width {
            let values = || rows.iter().skip(column).step_by(width).map(|&x| x.into());
            let mean = values().sum::<f64>() / count;
            let squares: f64 = values().map(|x| (x - mean) * (x - mean)).sum();
            let gap = mean - self.mean[column];
            self.mean[column] += gap * count / total;
            self.squares[column] += squares + gap * gap * self.count * count / total;
        }
        self.count = total;
    }

    /// Standard deviation of a column; zero before two rows.
    pub fn std(&self, column: usize) -> f64 {
        if self.count < 2.0 { 0.0 } else { (self.squares[column] / self.count).sqrt() }
    }
}

/// A shift and a factor for each column of an observation.
#[derive(Debug, Clone, PartialEq)]
pub struct Affine {
    /// Taken off first.
    pub mean: Vec<f32>,
    /// What the rest is multiplied by.
    pub factor: Vec<f32>,
}

impl Affine {
    /// Leaves `width` columns as they are.
    pub fn identity(width: usize) -> Self {
        Self { mean: vec![0.0; width], factor: vec![1.0; width] }
    }

    /// To mean 0 and spread 1. A column that hardly varies is not blown up: its spread counts as
    /// `std_min` at least.
    pub fn standard(moments: &Moments, std_min: f64) -> Self {
        let columns = 0..moments.mean.len();
        Self {
            mean: moments.mean.iter().map(|&mean| mean as f32).collect(),
            factor: columns.map(|column| (1.0 / moments.std(column).max(std_min)) as f32).collect(),
        }
    }

    /// Changes rows in place.
    pub fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.mean.len()) {
            for ((x, mean), factor) in row.iter_mut().zip(&self.mean).zip(&self.factor) {
                *x = (*x - mean) * factor;
            }
        }
    }
}

/// Scales rewards by the running spread of the discounted return, so that the critic's numbers are of
/// order one whatever a dollar is. The mean stays: subtracting it would change which policy is best.
#[derive(Debug, Clone, PartialEq)]
pub struct ReturnScale {
    gamma: f64,
    /// Largest size of a scaled reward.
    clip: f64,
    /// Of the discounted return so far, over all rows and steps.
    pub moments: Moments,
    /// Discounted return of each row's running episode.
    pub sums: Vec<f64>,
}

impl ReturnScale {
    /// For `rows` environments.
    pub fn new(rows: usize, gamma: f64, clip: f64) -> Self {
        Self { gamma, clip, moments: Moments::new(1), sums: vec![0.0; rows] }
    }

    /// Takes in the rewards of `steps` decisions of every row.
    ///
    /// # Panics
    ///
    /// If lengths differ.
    pub fn observe(&mut self, steps: usize, rewards: &[f64], ends: &[End]) {
        assert_eq!((rewards.len(), ends.len()), (self.sums.len() * steps, rewards.len()));
        let mut returns = Vec::with_capacity(rewards.len());
        for (row, sum) in self.sums.iter_mut().enumerate() {
            for i in row * steps..(row + 1) * steps {
                *sum = *sum * self.gamma + rewards[i];
                returns.push(*sum);
                if ends[i].is_end() {
                    *sum = 0.0;
                }
            }
        }
        self.moments.observe(&returns);
    }

    /// What a reward is multiplied by.
    pub fn factor(&self) -> f64 {
        // Before anything varied, and where nothing ever does, rewards pass as they are.
        const STD_MIN: f64 = 1e-4;
        let std = self.moments.std(0);
        if std < STD_MIN { 1.0 } else { 1.0 / std }
    }

    /// The reward in the critic's scale.
    pub fn apply(&self, rewards: &[f64], out: &mut [f32]) {
        let factor = self.factor();
        for (out, reward) in out.iter_mut().zip(rewards) {
            *out = (reward * factor).clamp(-self.clip, self.clip) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_add_up_to_the_whole() {
        let data: Vec<f64> = (0..60).map(|i| f64::from(i * i % 17) - 3.0).collect();
        let mut parts = Moments::new(2);
        for part in [&data[..2], &data[2..2], &data[2..20], &data[20..]] {
            parts.observe(part);
        }
        for column in 0..2 {
            let values: Vec<f64> = data.iter().skip(column).step_by(2).copied().collect();
            let mean = values.iter().sum::<f64>() / 30.0;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 30.0;
            assert!((parts.mean[column] - mean).abs() < 1e-12);
            assert!((parts.std(column) - variance.sqrt()).abs() < 1e-12);
        }
        assert_eq!(parts.count, 30.0);
        assert_eq!(Moments::new(1).std(0), 0.0);
    }

    #[test]
    fn columns_become_standard_but_constants_are_not_blown_up() {
        let mut moments = Moments::new(2);
        moments.observe(&[1.0_f32, 0.5, 5.0, 0.5]);
        let affine = Affine::standard(&moments, 0.1);
        let mut rows = [1.0, 0.5, 5.0, 0.7, 3.0, 0.4];
        affine.apply(&mut rows);
        let known = [-1.0, 0.0, 1.0, 2.0, 0.0, -1.0];
        assert!(rows.iter().zip(known).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-5), "{rows:?}");
        let before = rows;
        Affine::identity(2).apply(&mut rows);
        assert_eq!(rows, before);
    }

    /// By hand, gamma 1/2: returns of row 0 are 2, 1 + 4 = 5 (end), 6; of row 1 are 0, 0, 8. Mean 3.5,
    /// squares 2.25 + 2.25 + 6.25 + 12.25 + 12.25 + 20.25 = 55.5.
    #[test]
    fn the_scale_follows_the_discounted_return() {
        let mut scale = ReturnScale::new(2, 0.5, 10.0);
        assert_eq!(scale.factor(), 1.0);
        let ends = [End::Going, End::Truncated, End::Going, End::Going, End::Going, End::Going];
        scale.observe(3, &[2.0, 4.0, 6.0, 0.0, 0.0, 8.0], &ends);
        assert_eq!(scale.sums, [6.0, 8.0]);
        assert_eq!((scale.moments.count, scale.moments.mean[0]), (6.0, 3.5));
        assert!((scale.factor() - 1.0 / (55.5_f64 / 6.0).sqrt()).abs() < 1e-15);
        // The next return of row 0 goes on from 6.
        scale.observe(1, &[1.0, 1.0], &[End::Going; 2]);
        assert_eq!(scale.sums, [4.0, 5.0]);
    }

    #[test]
    fn rewards_are_scaled_and_clipped_but_not_shifted() {
        let mut scale = ReturnScale::new(1, 0.0, 2.0);
        scale.observe(4, &[-6.0, -2.0, -6.0, -2.0], &[End::Going; 4]);
        let mut out = [0.0; 3];
        scale.apply(&[-2.0, 0.0, -6.0], &mut out);
        assert_eq!(out, [-1.0, 0.0, -2.0]);
    }

    #[test]
    fn rewards_that_never_vary_pass_unscaled() {
        let mut scale = ReturnScale::new(1, 0.0, 10.0);
        scale.observe(3, &[5.0; 3], &[End::Going; 3]);
        assert_eq!(scale.factor(), 1.0);
    }
}
