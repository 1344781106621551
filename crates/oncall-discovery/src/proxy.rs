//! A node proxy: the last complete set of each cell that it follows, and one choice for each request (R92 to R102).
//!
//! Two halves that meet in the sets only. The watching half (`CellSub`, `Link`, `View`) follows relays in the
//! background; the request half (`Ejector`, `RetryBudget`, `Breaker`) never asks anybody: a request needs no
//! message to the control plane (R23, R70).

mod age;
mod back_off;
mod breaker;
mod component;
mod dials;
mod eject;
mod link;
mod request;
mod retry;
mod route;
mod stream;
mod sub;
mod view;

#[cfg(test)]
mod tests;

pub use age::{AgeAction, AgeRule, AgeVerdict};
pub use back_off::BackOff;
pub use breaker::{Breaker, BreakerRule, Gate};
pub use component::{Proxy, ProxyConfig, ProxyInput, ProxyTimer, Subscription};
pub use dials::ProxyDials;
pub use eject::{EjectRule, Ejected, Ejector, PassiveReport, ejection_time, may_eject};
pub use link::{Link, LinkState, Tend};
pub use request::{Attempt, AttemptResult, Outcome, Plan, Pool, Request, Served, Step, pick, pool};
pub use retry::RetryBudget;
pub use sub::{By, CellSub, RefusedFor, RepairFor, SubEvent, leaves_relay};
pub use view::View;
