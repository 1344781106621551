//! Makes a failing plan small: fewer events, fewer kinds of trouble, the same kind of failure.

use super::plan::{Off, Plan, Reduction};

/// Leaves out as much of a plan as possible such that `fails` still says yes. Delta debugging over the
/// events (Zeller and Hildebrandt 2002), then each kind of trouble, again and again until nothing can go.
pub fn shrink(plan: &Plan, fails: impl Fn(&Plan) -> bool) -> Reduction {
    let mut best = Reduction { keep: Some((0..plan.events.len()).collect()), off: Vec::new() };
    let still = |reduction: &Reduction| fails(&plan.clone().reduced(reduction));
    loop {
        let before = best.clone();
        for (off, _) in Off::ALL {
            if best.off.contains(&off) {
                continue;
            }
            let mut less = best.clone();
            less.off.push(off);
            if still(&less) {
                best = less;
            }
        }
        drop_events(&mut best, &still);
        if best == before {
            return best;
        }
    }
}

fn drop_events(best: &mut Reduction, still: &impl Fn(&Reduction) -> bool) {
    let mut size = best.keep.as_ref().map_or(0, Vec::len).div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while let Some(kept) = best.keep.as_ref().filter(|kept| at < kept.len()) {
            let end = (at + size).min(kept.len());
            let fewer: Vec<usize> = kept[..at].iter().chain(&kept[end..]).copied().collect();
            let less = Reduction { keep: Some(fewer), off: best.off.clone() };
            if still(&less) {
                *best = less;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
}
