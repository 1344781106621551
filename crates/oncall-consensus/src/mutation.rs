//! Faults that can be put in on purpose: a check that never fails proves nothing.
//!
//! The enum is always known, so that the code reads the same; a replica can be *given* a fault only
//! in this crate's own tests and with the feature `mutation`. Otherwise every question is `false` at
//! compile time.

use serde::{Deserialize, Serialize};

/// One known way to get Raft wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mutation {
    /// A vote is given without comparing logs.
    VoteWithoutLogCheck,
    /// The vote is lost in a restart, so that two candidates of a term can get it.
    VoteNotPersisted,
    /// The term is lost in a restart.
    TermNotPersisted,
    /// Entries of an earlier term are committed by counting copies (section 3.6.2 of the dissertation).
    CommitEarlierTerm,
    /// A follower keeps its entries where the leader's differ.
    NoTruncation,
    /// The leader commits what only it has.
    AcceptWithoutQuorum,
    /// Elections start without asking first.
    NoPreVote,
    /// A leader without a quorum goes on leading and taking proposals.
    NoCheckQuorum,
    /// Votes are given although a leader was heard a moment ago.
    VoteDespiteLeader,
    /// A follower takes entries of a leader whose term is over.
    StaleLeaderAccepted,
    /// Taking a snapshot drops the entries after it.
    CompactionLosesTail,
    /// An installed snapshot throws away entries after it that this follower has acknowledged.
    InstallLosesTail,
    /// A follower commits as far as the leader has, without looking how far its log agrees.
    CommitBeyondMatch,
    /// A follower acknowledges entries before they are durable.
    AckBeforePersist,
    /// A follower acknowledges everything it has, not what it knows to agree with the leader.
    AckUnmatched,
    /// A replica that comes back forgets that it may have promised to wait for a leader.
    RestartForgetsLease,
    /// A lease is counted from the arrival of the answer, not from the sending of the question.
    LeaseFromArrival,
    /// A replica stands for election out of turn although it has promised a leader to wait.
    CampaignDespitePromise,
    /// Fenced proposals are taken before the barrier of the term is committed.
    FenceIgnored,
    /// A candidate counts votes of an earlier term.
    StaleVoteCounted,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 20] = [
        Mutation::VoteWithoutLogCheck,
        Mutation::VoteNotPersisted,
        Mutation::TermNotPersisted,
        Mutation::CommitEarlierTerm,
        Mutation::NoTruncation,
        Mutation::AcceptWithoutQuorum,
        Mutation::NoPreVote,
        Mutation::NoCheckQuorum,
        Mutation::VoteDespiteLeader,
        Mutation::StaleLeaderAccepted,
        Mutation::CompactionLosesTail,
        Mutation::InstallLosesTail,
        Mutation::CommitBeyondMatch,
        Mutation::AckBeforePersist,
        Mutation::AckUnmatched,
        Mutation::RestartForgetsLease,
        Mutation::LeaseFromArrival,
        Mutation::CampaignDespitePromise,
        Mutation::FenceIgnored,
        Mutation::StaleVoteCounted,
    ];
}
