//! Adam (Kingma and Ba 2015) on plain slices, so that its moments can be saved.

/// Decay of the first and the second moment.
const BETA: (f64, f64) = (0.9, 0.999);

/// State of the optimiser.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    /// Running mean of the gradient.
    pub mean: Vec<f32>,
    /// Running mean of its square.
    pub square: Vec<f32>,
    /// Steps taken.
    pub steps: u64,
}

impl Adam {
    /// For so many parameters.
    pub fn new(len: usize) -> Self {
        Self { mean: vec![0.0; len], square: vec![0.0; len], steps: 0 }
    }

    /// One step against a gradient.
    pub fn step(&mut self, params: &mut [f32], gradient: &[f32], rate: f64, epsilon: f64) {
        self.steps += 1;
        // Beyond this the corrections are 1 in double precision.
        let steps = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let rate = (rate / (1.0 - BETA.0.powi(steps))) as f32;
        let correction = (1.0 / (1.0 - BETA.1.powi(steps))) as f32;
        let (b1, b2, epsilon) = (BETA.0 as f32, BETA.1 as f32, epsilon as f32);
        // Taken in double precision: 1 - 0.999 in single is off by 1 in 20,000.
        let (c1, c2) = ((1.0 - BETA.0) as f32, (1.0 - BETA.1) as f32);
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((param, &g), (mean, square)) in params.iter_mut().zip(gradient).zip(moments) {
            *mean = b1 * *mean + c1 * g;
            *square = b2 * *square + c2 * g * g;
            *param -= rate * *mean / ((*square * correction).sqrt() + epsilon);
        }
    }
}

/// Shortens a gradient to a norm, and gives the norm that it had.
pub fn clip_norm(gradient: &mut [f32], max: f64) -> f64 {
    let norm = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt();
    if norm > max {
        let factor = (max / norm) as f32;
        for g in gradient.iter_mut() {
            *g *= factor;
        }
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the first step moves every parameter by the rate against its sign. The second, with
    /// gradient 1 after 2: mean 0.1 * 1 + 0.9 * 0.2 = 0.28, over 1 - 0.81 is 1.473684; square
    /// 0.001 + 0.999 * 0.004 = 0.004996, over 1 - 0.998001 is 2.499250; their ratio is 0.932185.
    #[test]
    fn two_steps_by_hand() {
        let mut adam = Adam::new(2);
        let mut params = [1.0, 1.0];
        adam.step(&mut params, &[2.0, -3.0], 0.5, 0.0);
        assert!((params[0] - 0.5).abs() < 1e-6 && (params[1] - 1.5).abs() < 1e-6, "{params:?}");
        adam.step(&mut params, &[1.0, 0.0], 0.1, 0.0);
        assert!((params[0] - (0.5 - 0.093_218_5)).abs() < 1e-6, "{params:?}");
        assert_eq!(adam.steps, 2);
    }

    #[test]
    fn long_gradients_are_shortened() {
        let mut gradient = [3.0, 4.0];
        assert_eq!(clip_norm(&mut gradient, 10.0), 5.0);
        assert_eq!(gradient, [3.0, 4.0]);
        assert_eq!(clip_norm(&mut gradient, 1.0), 5.0);
        assert!((gradient[0] - 0.6).abs() < 1e-6 && (gradient[1] - 0.8).abs() < 1e-6);
    }
}
