//! The event file of `TensorBoard`, scalars only.
//!
//! The crates that write it have been left by their owners or bring a compiler for protocol buffers; what a
//! curve needs is little. A file is a row of records: length (u64), its checksum, the content, its
//! checksum, all little-endian. The content is a protocol buffer `Event`: wall time (field 1, double),
//! step (2, varint), and either the version of the file (3, text) or a `Summary` (5) with one `Value`
//! (1) a scalar: tag (1, text) and number (2, float).

use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// What the first record of a file says.
const VERSION: &str = "brain.Event:2";

/// Kinds of a protocol buffer's fields.
const VARINT: u64 = 0;
const DOUBLE: u64 = 1;
const BYTES: u64 = 2;
const FLOAT: u64 = 5;

/// An event file that grows.
#[derive(Debug)]
pub struct Events {
    file: File,
}

impl Events {
    /// Begins a file, in the place of one of that name; `time` is in seconds since 1970.
    pub fn create(path: &Path, time: f64) -> Result<Self> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        let mut events = Self { file };
        let mut event = head(time, 0);
        bytes(3, VERSION.as_bytes(), &mut event);
        events.record(&event)?;
        Ok(events)
    }

    /// Scalars of a step, through to the file. Those that are no numbers are left out.
    pub fn write<'a>(
        &mut self,
        (time, step): (f64, u64),
        scalars: impl Iterator<Item = (&'a str, f64)>,
    ) -> Result<()> {
        let mut summary = Vec::new();
        for (tag, number) in scalars.filter(|(_, number)| !number.is_nan()) {
            let mut value = Vec::new();
            bytes(1, tag.as_bytes(), &mut value);
            key(2, FLOAT, &mut value);
            value.extend((number as f32).to_le_bytes());
            bytes(1, &value, &mut summary);
        }
        let mut event = head(time, step);
        bytes(5, &summary, &mut event);
        self.record(&event)
    }

    fn record(&mut self, content: &[u8]) -> Result<()> {
        let length = (content.len() as u64).to_le_bytes();
        let mut record = length.to_vec();
        record.extend(masked(checksum(&length)).to_le_bytes());
        record.extend(content);
        record.extend(masked(checksum(content)).to_le_bytes());
        // In one piece: a reader that follows the file sees whole records.
        Ok(self.file.write_all(&record)?)
    }
}

fn head(time: f64, step: u64) -> Vec<u8> {
    let mut event = Vec::new();
    key(1, DOUBLE, &mut event);
    event.extend(time.to_le_bytes());
    key(2, VARINT, &mut event);
    varint(step, &mut event);
    event
}

fn key(field: u64, kind: u64, out: &mut Vec<u8>) {
    varint(field << 3 | kind, out);
}

fn bytes(field: u64, content: &[u8], out: &mut Vec<u8>) {
    key(field, BYTES, out);
    varint(content.len() as u64, out);
    out.extend(content);
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// CRC-32C (Castagnoli), bit by bit: some hundred bytes an update.
fn checksum(content: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut crc = !0;
    for &byte in content {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
        }
    }
    !crc
}

/// As records store it, so that a checksum of content with checksums in it stays useful.
fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first is the check value of the CRC's definition, the second of RFC 3720, B.4.
    #[test]
    fn checksums_are_the_published_ones() {
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
        // By hand: 0x8a9136aa turned by 15 bits is 0x6d551522, plus the constant.
        assert_eq!(masked(0x8a91_36aa), 0x6d55_1522_u32.wrapping_add(0xa282_ead8));
    }

    /// Byte by byte, as the formats' descriptions say.
    #[test]
    fn a_file_by_hand() {
        let path = std::env::temp_dir().join(format!("oncall-events-{}", std::process::id()));
        let mut events = Events::create(&path, 2.0).unwrap();
        events.write((2.0, 300), [("ab", 1.0), ("no", f64::NAN)].into_iter()).unwrap();
        let found = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let two = [0x09, 0, 0, 0, 0, 0, 0, 0, 0x40];
        let first = [&two[..], &[0x10, 0, 0x1a, 13], b"brain.Event:2"].concat();
        // Step 300 is 0b10_0101100.
        let value = [&[0x0a, 2][..], b"ab", &[0x15, 0, 0, 0x80, 0x3f]].concat();
        let second = [&two[..], &[0x10, 0xac, 2, 0x2a, 11, 0x0a, 9], &value].concat();
        let mut known = Vec::new();
        for content in [first, second] {
            let length = (content.len() as u64).to_le_bytes();
            known.extend(length);
            known.extend(masked(checksum(&length)).to_le_bytes());
            known.extend(&content);
            known.extend(masked(checksum(&content)).to_le_bytes());
        }
        assert_eq!(found, known);
    }
}
