use proptest::prelude::*;

use super::*;
use crate::dials::Dials;
use crate::mutants::{Mutant, Mutants};
use crate::proxy::AgeAction;
use crate::types::{RegionId, ServiceId, Span, Time};

const A: RegionId = RegionId(0);
const B: RegionId = RegionId(1);
const C: RegionId = RegionId(2);
const RULE: FailoverRule = FailoverRule { trigger_pct: 50.0, cap_pct: 40.0 };

fn counts(a: u32, b: u32, c: u32) -> [u32; REGIONS_MAX] {
    [a, b, c, 0, 0, 0, 0, 0]
}

fn policy() -> ServicePolicy {
    ServicePolicy {
        order: vec![B, C, A],
        spare: counts(10, 10, 20),
        ..ServicePolicy::home_only(counts(20, 20, 20))
    }
}

fn failed_over() -> Failover {
    let mut failover = Failover::default();
    assert!(failover.update(0, 20, RULE));
    failover
}

fn shares(policy: &ServicePolicy, ready: [u32; REGIONS_MAX], mutants: Mutants) -> [f64; 3] {
    let all = failed_over().shares(policy, A, 3, &ready, RULE, mutants).by_region;
    [all[0], all[1], all[2]]
}

#[test]
fn failover_has_a_trigger_and_a_hysteresis() {
    let mut failover = Failover::default();
    let seen: Vec<bool> = [20, 10, 9, 10, 11, 12, 11, 9]
        .map(|ready| {
            failover.update(ready, 20, RULE);
            failover.active()
        })
        .to_vec();
    assert_eq!(seen, [false, false, true, true, true, false, false, true]);
    assert!(!Failover::default().update(0, 20, FailoverRule { trigger_pct: 0.0, ..RULE }));
}

#[test]
fn what_is_missing_goes_to_others_in_order_and_within_the_cap() {
    // 40 % of B's spare 10 for two other regions: 2 instances. Of C's 20: 4.
    assert_eq!(shares(&policy(), counts(19, 20, 20), Mutants::default()), [0.95, 0.05, 0.0]);
    assert_eq!(shares(&policy(), counts(17, 20, 20), Mutants::default()), [0.85, 0.1, 0.05]);
    assert_eq!(shares(&policy(), counts(0, 20, 20), Mutants::default()), [0.7, 0.1, 0.2]);
    // A region without READY instances takes nothing.
    assert_eq!(shares(&policy(), counts(0, 0, 20), Mutants::default()), [0.8, 0.0, 0.2]);
    assert_eq!(shares(&policy(), counts(0, 0, 0), Mutants::default()), [1.0, 0.0, 0.0]);
    // Off: everything stays at home, however little there is.
    let off =
        Failover::default().shares(&policy(), A, 3, &counts(1, 20, 20), RULE, Mutants::default());
    assert_eq!(off.by_region[0], 1.0);
}

#[test]
fn residency_and_order_restrict_the_targets() {
    let ready = counts(0, 20, 20);
    let here = ServicePolicy { order: vec![C], ..policy() };
    assert_eq!(shares(&here, ready, Mutants::default()), [0.8, 0.0, 0.2]);
    let bound = ServicePolicy { residency: RegionSet::of(&[A, B]), ..policy() };
    assert_eq!(shares(&bound, ready, Mutants::default()), [0.9, 0.1, 0.0]);
    let home = ServicePolicy::home_only(counts(20, 20, 20));
    assert_eq!(shares(&home, ready, Mutants::default()), [1.0, 0.0, 0.0]);
}

fn the_cap_holds_for_all_callers_together(mutants: Mutants) {
    // A and B are both down and both turn to C.
    let ready = counts(0, 0, 20);
    let policy = policy();
    let loads = [A, B].map(|home| {
        let all = failed_over().shares(&policy, home, 3, &ready, RULE, mutants);
        all.by_region[C.index()] * f64::from(policy.target[home.index()])
    });
    let cap = f64::from(policy.spare[C.index()]) * RULE.cap_pct / 100.0;
    assert!(loads[0] + loads[1] <= cap + 1e-9, "{loads:?} over {cap}");
}

#[test]
fn two_regions_in_trouble_stay_within_the_cap_of_the_third() {
    the_cap_holds_for_all_callers_together(Mutants::default());
}

#[test]
fn failover_without_a_cap_is_caught() {
    let mutants = Mutants::only(Mutant::FailoverUncapped);
    assert!(std::panic::catch_unwind(|| the_cap_holds_for_all_callers_together(mutants)).is_err());
}

fn targets(
    policy: &ServicePolicy,
    operation: Operation,
    owner: &OwnerView,
    uniform: u32,
    mutants: Mutants,
) -> Vec<RegionId> {
    let ready = counts(0, 20, 20);
    let call = (A, operation);
    failed_over().targets(policy, call, 3, &ready, owner, RULE, uniform, mutants).regions().to_vec()
}

#[test]
fn a_call_gets_one_region_by_its_share() {
    let owner = OwnerView::default();
    let pick = |share: f64| {
        let uniform = (share * f64::from(u32::MAX)) as u32;
        targets(&policy(), Operation::Read, &owner, uniform, Mutants::default())
    };
    assert_eq!(
        [pick(0.0), pick(0.69), pick(0.71), pick(0.79), pick(0.81), pick(1.0)].concat(),
        [A, A, B, B, C, C]
    );
    // Writes to a service that takes none are refused, and so are calls from where its data may not be.
    assert_eq!(targets(&policy(), Operation::Write, &owner, 0, Mutants::default()), []);
    let elsewhere = ServicePolicy { residency: RegionSet::of(&[B, C]), ..policy() };
    assert_eq!(targets(&elsewhere, Operation::Read, &owner, 0, Mutants::default()), []);
    let writable = ServicePolicy { access: Access::Writable, ..policy() };
    let write = targets(&writable, Operation::Write, &owner, u32::MAX, Mutants::default());
    assert_eq!(write, [C]);
}

fn single_writer_waits_for_the_token(mutants: Mutants) {
    let policy = ServicePolicy { access: Access::SingleWriter, ..policy() };
    let mut owner = OwnerView::default();
    let write = |owner: &OwnerView| targets(&policy, Operation::Write, owner, 0, mutants);
    assert_eq!(write(&owner), [], "nobody owns it: nobody takes writes");
    let until = Time::from_s(10);
    owner.learn(OwnershipToken { epoch: 1, region: A, until });
    // A has nothing READY, B has. The write goes to A all the same, and fails there if it must.
    assert_eq!(write(&owner), [A]);
    assert!(owner.learn(OwnershipToken { epoch: 2, region: B, until }));
    assert!(!owner.learn(OwnershipToken { epoch: 1, region: A, until: Time::from_s(99) }));
    assert_eq!(write(&owner), [B]);
    // Reads do not wait.
    assert_eq!(targets(&policy, Operation::Read, &owner, u32::MAX, mutants), [C]);
}

#[test]
fn writes_move_with_the_ownership_only() {
    single_writer_waits_for_the_token(Mutants::default());
}

#[test]
fn writes_without_a_token_are_caught() {
    let mutants = Mutants::only(Mutant::WriterWithoutToken);
    assert!(std::panic::catch_unwind(|| single_writer_waits_for_the_token(mutants)).is_err());
}

#[test]
fn ownership_has_one_holder_at_a_time() {
    let mut ownership = Ownership::new(Span::from_s(10), Span::from_s(1));
    let first = ownership.claim(Time::from_s(0), A).unwrap();
    assert_eq!((first.epoch, first.until), (1, Time::from_s(10)));
    assert_eq!(ownership.claim(Time::from_s(5), B), Err(OwnershipError::Held(first)));
    let renewed = ownership.renew(Time::from_s(8), first).unwrap();
    assert_eq!(renewed.until, Time::from_s(18));
    assert_eq!(ownership.claim(Time::from_s(19), B), Err(OwnershipError::Held(renewed)));
    assert_eq!(ownership.renew(Time::from_s(19), renewed), Err(OwnershipError::Over));
    let second = ownership.claim(Time::from_ms(19_001), B).unwrap();
    assert_eq!(second.epoch, 2);
    assert!(!renewed.may_write(Time::from_s(18)), "the old owner stopped a second before");
    let old = OwnershipError::OldEpoch { given: 1, known: 2 };
    assert_eq!(ownership.renew(Time::from_s(20), renewed), Err(old));
    assert_eq!(ownership.release(renewed), Err(old));
    ownership.release(second).unwrap();
    assert_eq!(ownership.claim(Time::from_s(20), A).unwrap().epoch, 3, "given back, taken at once");

    let mut fence = WriteFence::default();
    assert_eq!([1, 2, 1, 2, 3].map(|epoch| fence.accepts(epoch)), [true, true, false, true, true]);
}

#[test]
fn the_age_of_a_snapshot_is_a_matter_of_the_service() {
    let dials = Dials::default();
    let ordinary = policy().age_rule(&dials);
    assert_eq!((ordinary.max, ordinary.action), (Span::from_s(1_800), AgeAction::Degrade));
    let strict = ServicePolicy { strict_age: true, age_action: AgeAction::Reject, ..policy() };
    let strict = strict.age_rule(&dials);
    assert_eq!((strict.max, strict.action), (Span::from_s(600), AgeAction::Reject));
}

#[test]
fn policies_are_checked_and_named() {
    let check = |policy: ServicePolicy| {
        PolicyBook::new(1, 3, vec![ServicePolicy::home_only(counts(1, 1, 1)), policy])
    };
    let error = |policy| check(policy).unwrap_err().to_string();
    let far = ServicePolicy { order: vec![RegionId(3)], ..policy() };
    assert_eq!(error(far), "policies[1].order: region 3; expected less than 3");
    let twice = ServicePolicy { order: vec![B, C, B], ..policy() };
    assert_eq!(error(twice), "policies[1].order: region 1 twice");
    let outside = ServicePolicy { residency: RegionSet::of(&[A, B]), ..policy() };
    assert_eq!(error(outside), "policies[1].order: region 2, which residency leaves out");
    assert_eq!(PolicyBook::new(1, 9, vec![]).unwrap_err(), PolicyError::Regions(9));
    let mut book = check(policy()).unwrap();
    assert_eq!(book.policy(ServiceId(1)), Some(&policy()));
    assert_eq!((book.policy(ServiceId(2)), book.regions()), (None, 3));
    let late = PolicyBook::new(0, 3, vec![]).unwrap();
    assert!(!book.adopt(&late), "an older version arrives late");
    let newer = PolicyBook::new(2, 3, vec![]).unwrap();
    assert!(book.adopt(&newer));
    assert_eq!(book.version(), 2);
}

proptest! {
    /// Whatever is READY, declared and dialled: shares are shares, they go only where the policy permits, and all
    /// regions together take no more from one than its capped spare.
    #[test]
    fn shares_stay_within_the_policy(
        ready in prop::array::uniform3(0_u32..40),
        target in prop::array::uniform3(1_u32..40),
        spare in prop::array::uniform3(0_u32..40),
        order in Just(vec![A, B, C]).prop_shuffle(),
        listed in 0_usize..=3,
        residency in 0_u8..8,
        trigger_pct in 0.0..=100.0,
        cap_pct in 0.0..=100.0,
    ) {
        let eight = |three: [u32; 3]| counts(three[0], three[1], three[2]);
        let allowed: Vec<RegionId> =
            [A, B, C].into_iter().filter(|region| residency >> region.0 & 1 == 1).collect();
        let policy = ServicePolicy {
            order: order[..listed].to_vec(),
            residency: RegionSet::of(&allowed),
            spare: eight(spare),
            ..ServicePolicy::home_only(eight(target))
        };
        let rule = FailoverRule { trigger_pct, cap_pct };
        let mut taken = [0.0; 3];
        for home in [A, B, C] {
            let mut failover = Failover::default();
            failover.update(ready[home.index()], target[home.index()], rule);
            let off = Mutants::default();
            let shares = failover.shares(&policy, home, 3, &eight(ready), rule, off).by_region;
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            for region in [A, B, C] {
                let share = shares[region.index()];
                prop_assert!((-1e-12..=1.0).contains(&share));
                if region != home && share > 0.0 {
                    let nobody = OwnerView::default();
                    prop_assert!(policy.permits(home, region, Operation::Read, &nobody));
                    prop_assert!(ready[region.index()] > 0);
                    taken[region.index()] += share * f64::from(target[home.index()]);
                }
            }
        }
        for region in 0..3 {
            prop_assert!(taken[region] <= f64::from(spare[region]) * cap_pct / 100.0 + 1e-9);
        }
    }
}
