//! Which instructions a loop over lanes is compiled to, chosen when the program runs.
//!
//! The same source is compiled three times on x86-64: for the instructions that every such processor
//! has (SSE2), for AVX2, and for AVX-512. A [`Kernel`] is run by the widest of these that the
//! processor has, so that one binary is fast everywhere. On other processors there is one.
//!
//! **The bits are the same.** Wider registers hold more lanes and change no operation: the compiler
//! neither reorders floating-point arithmetic nor fuses a product into a sum unless it is told to.
//! The tests play the same episodes in all sets and compare digests.
//!
//! The environment variable `ONCALL_ISA` (`baseline`, `avx2` or `avx512`) asks for one set, if the
//! processor has it; tests use [`force`].

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of instructions; a later one includes the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// What every processor of the target has: SSE2 on x86-64, NEON on 64-bit ARM.
    Baseline = 1,
    /// 256 bits.
    Avx2 = 2,
    /// 512 bits.
    Avx512 = 3,
}

/// The set in use; 0 before it was chosen.
static CURRENT: AtomicU8 = AtomicU8::new(0);

impl Isa {
    /// All of them, narrowest first.
    pub const ALL: [Isa; 3] = [Isa::Baseline, Isa::Avx2, Isa::Avx512];

    /// `baseline`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Baseline => "baseline",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Whether this processor has it.
    #[cfg(target_arch = "x86_64")]
    pub fn is_present(self) -> bool {
        use std::arch::is_x86_feature_detected as has;
        match self {
            Isa::Baseline => true,
            Isa::Avx2 => has!("avx2") && has!("bmi1") && has!("bmi2"),
            Isa::Avx512 => {
                Isa::Avx2.is_present()
                    && has!("avx512f")
                    && has!("avx512bw")
                    && has!("avx512dq")
                    && has!("avx512vl")
            }
        }
    }

    /// Whether this processor has it.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_present(self) -> bool {
        self == Isa::Baseline
    }

    /// The set in use: the widest one, unless the environment or [`force`] said another.
    #[inline]
    pub fn current() -> Self {
        match CURRENT.load(Ordering::Relaxed) {
            1 => Isa::Baseline,
            2 => Isa::Avx2,
            3 => Isa::Avx512,
            _ => Self::choose(),
        }
    }

    #[cold]
    fn choose() -> Self {
        let present = || Isa::ALL.into_iter().filter(|isa| isa.is_present());
        let asked = std::env::var("ONCALL_ISA").unwrap_or_default();
        let widest = present().next_back().unwrap_or(Isa::Baseline);
        let isa = present().find(|isa| isa.name() == asked).unwrap_or(widest);
        CURRENT.store(isa as u8, Ordering::Relaxed);
        isa
    }
}

/// Uses this set from now on, in the whole process; `false`, and no change, if the processor does not
/// have it. It changes the speed and no result.
pub fn force(isa: Isa) -> bool {
    if isa.is_present() {
        CURRENT.store(isa as u8, Ordering::Relaxed);
    }
    isa.is_present()
}

/// Work that is compiled for each set of instructions.
///
/// `run` and everything hot that it calls must be `#[inline(always)]`: code that is not inlined into
/// the function of a set is compiled for the baseline.
pub trait Kernel {
    /// Result.
    type Out;
    /// Does the work.
    fn run(self) -> Self::Out;
}

/// Runs a kernel with the set in use.
#[inline]
pub fn run<K: Kernel>(kernel: K) -> K::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[expect(unsafe_code, reason = "a set is in use only if the processor was asked for it")]
        match Isa::current() {
            // SAFETY: `Isa::current` gives a set only after `is_present` said that this processor
            // has every feature that the function is compiled for.
            Isa::Avx512 => unsafe { run_avx512(kernel) },
            // SAFETY: as above.
            Isa::Avx2 => unsafe { run_avx2(kernel) },
            Isa::Baseline => kernel.run(),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Out {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Out {
    kernel.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sum<'a>(&'a [f64]);

    impl Kernel for Sum<'_> {
        type Out = f64;
        #[inline(always)]
        #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
        fn run(self) -> f64 {
            self.0.iter().map(|x| x * 1.1 + 0.3).sum()
        }
    }

    #[test]
    fn every_set_gives_the_same_bits() {
        let numbers: Vec<f64> = (0..1000).map(|i| f64::from(i) / 7.0).collect();
        let found: Vec<u64> = Isa::ALL
            .into_iter()
            .filter(|&isa| force(isa))
            .map(|isa| {
                assert_eq!(Isa::current(), isa);
                run(Sum(&numbers)).to_bits()
            })
            .collect();
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
