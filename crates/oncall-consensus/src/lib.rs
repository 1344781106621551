//! A replicated log in the manner of Raft: no I/O, no clock, no random numbers of its own.
