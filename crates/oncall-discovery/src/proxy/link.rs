//! A reader's stream to a relay: connecting, silence, leaving a bad relay.

use serde::{Deserialize, Serialize};

use super::BackOff;
use crate::types::{Span, Time};

/// State of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LinkState {
    /// None; the next attempt is at [`Link::due`].
    #[default]
    Down,
    /// Asked for; given up at [`Link::due`].
    Connecting,
    /// Open; looked after at [`Link::due`].
    Up,
}

/// What is to be done at [`Link::due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tend {
    /// Nothing yet.
    Nothing,
    /// Open a stream: call [`Link::connect`].
    Connect,
    /// Nothing has come for too long: call [`Link::lost`].
    Silent,
    /// No answer to the attempt: call [`Link::lost`].
    NoAnswer,
}

/// A stream and its back-off. 24 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Link {
    session: u32,
    last_contact_ms: u32,
    due_ms: u32,
    relay: u16,
    attempts: u8,
    lagging: u8,
    state: LinkState,
}

/// Heartbeats in a row in which a relay stood behind its reader, after which the reader leaves it.
const LAGGING_MAX: u8 = 3;

impl Link {
    /// No stream yet; `relay` is the place of the home relay in the reader's list.
    pub fn new(relay: u16) -> Self {
        Self { relay, ..Self::default() }
    }

    /// State.
    pub const fn state(&self) -> LinkState {
        self.state
    }

    /// Number of the stream, counted over all attempts.
    pub const fn session(&self) -> u32 {
        self.session
    }

    /// Place of the relay in the reader's list.
    pub const fn relay(&self) -> u16 {
        self.relay
    }

    /// Failed attempts in a row.
    pub const fn attempts(&self) -> u8 {
        self.attempts
    }

    /// When something was last heard from the control plane (R93).
    pub fn last_contact(&self) -> Time {
        Time::from_ms(u64::from(self.last_contact_ms))
    }

    /// When [`Link::tend`] wants to be called.
    pub fn due(&self) -> Time {
        Time::from_ms(u64::from(self.due_ms))
    }

    /// Opens a stream now: the number to say hello with. Given up without a welcome within `patience`.
    pub fn connect(&mut self, now: Time, patience: Span) -> u32 {
        self.session = self.session.wrapping_add(1);
        self.state = LinkState::Connecting;
        self.due_ms = up_ms(now.after(patience));
        self.session
    }

    /// A welcome came. Returns whether it is for this stream.
    pub fn welcomed(&mut self, now: Time, session: u32, heartbeat: Span) -> bool {
        if session != self.session || self.state != LinkState::Connecting {
            return false;
        }
        self.state = LinkState::Up;
        self.lagging = 0;
        self.heard(now);
        self.due_ms = up_ms(now.after(silence(heartbeat)));
        true
    }

    /// Something came.
    pub fn heard(&mut self, now: Time) {
        self.last_contact_ms = now.ms();
    }

    /// Something good came: the next failure begins the back-off anew.
    pub fn proved(&mut self) {
        self.attempts = 0;
    }

    /// What is to be done now. An open stream is silent after two and a half heartbeats without a message.
    pub fn tend(&mut self, now: Time, heartbeat: Span) -> Tend {
        if now < self.due() {
            return Tend::Nothing;
        }
        match self.state {
            LinkState::Down => Tend::Connect,
            LinkState::Connecting => Tend::NoAnswer,
            LinkState::Up => {
                let limit = self.last_contact().after(silence(heartbeat));
                if now >= limit {
                    return Tend::Silent;
                }
                self.due_ms = up_ms(limit);
                Tend::Nothing
            }
        }
    }

    /// The stream has ended, was refused, or is given up. The first attempt after it goes to the same relay,
    /// later ones to another of the `relays`: all readers of a dead relay do not move to one neighbour.
    /// `not_before` is what the relay asked for.
    pub fn lost(
        &mut self,
        now: Time,
        back_off: BackOff,
        not_before: Span,
        relays: u16,
        uniform: u32,
    ) {
        if self.attempts > 0 {
            self.turn(relays, uniform);
        }
        self.down(now, back_off.delay(self.attempts, uniform).max(not_before));
    }

    /// Leaves the relay for another because of what it sent, after `delay`.
    pub fn leave(&mut self, now: Time, delay: Span, relays: u16, uniform: u32) {
        self.turn(relays, uniform);
        self.down(now, delay);
    }

    /// The next attempt goes to this relay: relays were added or taken away.
    pub fn send_to(&mut self, relay: u16) {
        self.relay = relay;
    }

    fn down(&mut self, now: Time, delay: Span) {
        self.state = LinkState::Down;
        self.attempts = self.attempts.saturating_add(1);
        self.due_ms = up_ms(now.after(delay));
    }

    fn turn(&mut self, relays: u16, uniform: u32) {
        if relays > 1 {
            // Other bits than the delay's, or place and time would go together.
            let word = oncall_core::streams::scramble(u64::from(uniform));
            let hop = 1 + (word % u64::from(relays - 1)) as u16;
            self.relay = (self.relay + hop) % relays;
        }
    }

    /// A heartbeat showed whether the relay stands behind this reader. Returns true when it has for too long: it
    /// has lost its own source, and another relay is known to be further.
    pub fn lags(&mut self, behind: bool) -> bool {
        self.lagging = if behind { self.lagging.saturating_add(1) } else { 0 };
        self.lagging >= LAGGING_MAX
    }
}

/// Two and a half heartbeats: one may be lost and the next late.
fn silence(heartbeat: Span) -> Span {
    Span(heartbeat.0 * 5 / 2)
}

/// Whole milliseconds, rounded up: never earlier than asked for.
fn up_ms(at: Time) -> u32 {
    at.after(Span(999)).ms()
}
