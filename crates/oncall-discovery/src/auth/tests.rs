use super::*;
use crate::mutants::{Mutant, Mutants};
use crate::types::{
    Address, Cell, InstanceId, NodeId, Place, ProberId, ProxyId, RegionId, RelayId, ServiceId,
    Span, Time, ZoneId,
};

const HOUR: Span = Span::from_s(3_600);

fn claims(role: Role) -> Claims {
    Claims {
        subject: Subject(7),
        role,
        audience: Audience::Catalog(RegionId(1)),
        issued: Time::from_s(100),
        expires: Time::from_s(200),
    }
}

fn roles() -> Vec<Role> {
    let place = Place { region: RegionId(1), zone: ZoneId(2) };
    let cell = Cell { service: ServiceId(3), region: RegionId(1) };
    vec![
        Role::Controller { region: RegionId(1) },
        Role::Agent { node: NodeId(4), place, ip: 5, services: vec![ServiceId(3)] },
        Role::Agent { node: NodeId(4), place, ip: 5, services: vec![] },
        Role::Workload { cell, instance: InstanceId(6), address: Address { ip: 5, port: 6 } },
        Role::Workload { cell, instance: InstanceId(6), address: Address { ip: 5, port: 7 } },
        Role::Proxy { proxy: ProxyId(4), place, services: vec![ServiceId(3), ServiceId(9)] },
        Role::Prober { region: RegionId(1), prober: ProberId(0) },
        Role::Relay { region: RegionId(1), relay: RelayId(0) },
    ]
}

fn accepts_and_refuses<V: Verifier>(gate: &Gate<V>, issuer: &impl Issuer) {
    for role in roles() {
        let token = issuer.issue(claims(role));
        assert_eq!(gate.check(Time::from_s(100), &token), Ok(&token.claims));
        // Whatever is altered, the signature does not fit any more.
        let mut forged = vec![token.clone(); 5];
        forged[0].claims.subject = Subject(8);
        forged[1].claims.audience = Audience::Distribution(RegionId(1));
        forged[2].claims.expires = Time::from_s(201);
        forged[3].claims.issued = Time::from_s(99);
        forged[4].claims.role = Role::Controller { region: RegionId(0) };
        for token in forged {
            assert_eq!(gate.check(Time::from_s(150), &token), Err(AuthError::BadSignature));
        }
        for other in roles() {
            let mut token = token.clone();
            if token.claims.role != other {
                token.claims.role = other;
                assert_eq!(gate.check(Time::from_s(150), &token), Err(AuthError::BadSignature));
            }
        }
    }
}

#[test]
fn real_signatures() {
    let issuer = Ed25519Issuer::new(&[3; 32]);
    let gate = Gate::new(issuer.verifier(), Audience::Catalog(RegionId(1)), HOUR);
    accepts_and_refuses(&gate, &issuer);
    let stranger = Ed25519Issuer::new(&[4; 32]).issue(claims(roles().remove(0)));
    assert_eq!(gate.check(Time::from_s(150), &stranger), Err(AuthError::BadSignature));
    let symbolic = SymbolicAuthority(3).issue(claims(roles().remove(0)));
    assert_eq!(gate.check(Time::from_s(150), &symbolic), Err(AuthError::BadSignature));
    // Not every 32 bytes are a point of the curve.
    let bad = (0..=255).find_map(|byte| Ed25519Verifier::new(&[byte; 32]).err());
    assert_eq!(bad, Some(VerifyingKeyError));
}

#[test]
fn symbolic_signatures() {
    let authority = SymbolicAuthority(9);
    let gate = Gate::new(authority, Audience::Catalog(RegionId(1)), HOUR);
    accepts_and_refuses(&gate, &authority);
    let stranger = SymbolicAuthority(10).issue(claims(roles().remove(0)));
    assert_eq!(gate.check(Time::from_s(150), &stranger), Err(AuthError::BadSignature));
}

#[test]
fn both_verifiers_decide_alike() {
    let (real, symbolic) = (Ed25519Issuer::new(&[3; 32]), SymbolicAuthority(9));
    let audience = Audience::Catalog(RegionId(1));
    let gates = (Gate::new(real.verifier(), audience, HOUR), Gate::new(symbolic, audience, HOUR));
    for role in roles() {
        for (issued_s, expires_s, now_s) in
            [(100, 200, 150), (100, 200, 99), (100, 200, 200), (100, 3_701, 150), (5, 5, 5)]
        {
            let claims = Claims {
                issued: Time::from_s(issued_s),
                expires: Time::from_s(expires_s),
                ..claims(role.clone())
            };
            let (one, two) = (real.issue(claims.clone()), symbolic.issue(claims));
            let now = Time::from_s(now_s);
            assert_eq!(gates.0.check(now, &one), gates.1.check(now, &two));
        }
    }
}

#[test]
fn time_audience_and_lifetime_are_checked() {
    let authority = SymbolicAuthority(9);
    let gate = Gate::new(authority, Audience::Catalog(RegionId(1)), HOUR);
    let token = authority.issue(claims(Role::Controller { region: RegionId(1) }));
    let check = |now_s, token: &Token| gate.check(Time::from_s(now_s), token).err();
    assert!(matches!(check(99, &token), Some(AuthError::NotYet { .. })));
    assert!(matches!(check(200, &token), Some(AuthError::Expired { .. })));
    let elsewhere = Claims { audience: Audience::Catalog(RegionId(0)), ..token.claims.clone() };
    assert!(matches!(check(150, &authority.issue(elsewhere)), Some(AuthError::Audience { .. })));
    let long = Claims { expires: Time::from_s(3_701), ..token.claims.clone() };
    let error = check(150, &authority.issue(long)).unwrap();
    assert_eq!(error, AuthError::TooLong { lifetime: Span::from_s(3_601), max: HOUR });
}

fn a_revoked_identity_is_refused(mutants: Mutants) {
    let authority = SymbolicAuthority(9);
    let mut gate = Gate::new(authority, Audience::Catalog(RegionId(1)), HOUR).with_mutants(mutants);
    let token = authority.issue(claims(Role::Controller { region: RegionId(1) }));
    gate.revocations().revoke(Subject(7), Time::from_s(120));
    gate.revocations().revoke(Subject(7), Time::from_s(110));
    let refused = Err(AuthError::Revoked(Subject(7)));
    assert_eq!(gate.check(Time::from_s(130), &token), refused.clone().map(|()| &token.claims));
    // At connection time too: a stale view may still name it.
    assert_eq!(gate.admits_peer(Subject(7), token.claims.issued), refused);
    assert_eq!(gate.admits_peer(Subject(8), token.claims.issued), Ok(()));
    // A token issued after the revocation is a new start.
    let fresh = authority.issue(Claims { issued: Time::from_s(121), ..token.claims.clone() });
    assert_eq!(gate.check(Time::from_s(130), &fresh), Ok(&fresh.claims));
    // It is forgotten only when no token that it covers can be valid any more.
    gate.revocations().prune(Time::from_s(3_719), HOUR);
    assert_eq!(gate.revocations().len(), 1);
    gate.revocations().prune(Time::from_s(3_720), HOUR);
    assert!(gate.revocations().is_empty());
}

#[test]
fn revocation() {
    a_revoked_identity_is_refused(Mutants::default());
}

#[test]
fn ignored_revocation_is_caught() {
    let mutants = Mutants::only(Mutant::RevocationIgnored);
    assert!(std::panic::catch_unwind(|| a_revoked_identity_is_refused(mutants)).is_err());
}
