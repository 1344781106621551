//! A running hash over the raw bits of state: equal digests mean equal trajectories.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// 64-bit FNV-1a of bytes; the hash of scenario texts and of a `Spec`.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// A hash as people compare it and as JSON keeps it: sixteen hexadecimal digits.
pub fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

/// FNV-1a, word by word, with a final scramble; not cryptographic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(OFFSET)
    }
}

impl Digest {
    /// An empty digest.
    pub fn new() -> Self {
        Self::default()
    }

    /// Feeds one word.
    #[inline]
    pub fn word(&mut self, word: u64) {
        // A multiply alone never carries high bits down, so the word is scrambled first.
        self.0 = (self.0 ^ crate::streams::scramble(word)).wrapping_mul(PRIME);
    }

    /// Feeds the bits of a number: -0.0 and +0.0 differ, and so do two NaNs.
    #[inline]
    pub fn f64(&mut self, x: f64) {
        self.word(x.to_bits());
    }

    /// The hash so far.
    pub fn value(self) -> u64 {
        crate::streams::scramble(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_known_answers() {
        // From the published FNV test vectors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn order_and_every_bit_count() {
        let of = |words: &[u64]| {
            let mut digest = Digest::new();
            for &word in words {
                digest.word(word);
            }
            digest.value()
        };
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0]), of(&[0, 0]));
        for bit in 0..64 {
            assert_ne!(of(&[1 << bit]), of(&[0]));
        }
    }
}
