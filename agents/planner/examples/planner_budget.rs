//! What more search is worth: mean return by budget, on the first test episodes of seed 1.
//!
//! ```text
//! cargo run --release -p oncall-planner --example planner_budget -- spike 10 0 500000 1500000 6000000
//! ```

use oncall_core::Split;
use oncall_planner::{Batch, Planned, Search, plan_batch};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, episodes, budgets @ ..] = args.as_slice() else {
        return Err("expected a scenario, a number of episodes, and budgets in minutes".into());
    };
    let scenario = oncall_env::shipped(name).ok_or("expected a shipped scenario")?;
    let episodes: usize = episodes.parse()?;
    println!("{name}\nbudget_min   return_usd   best_rule   relaxed   s_per_episode");
    for budget in budgets {
        let search = Search { budget_min: budget.parse()?, seed: 1 };
        let batch = Batch { episodes, split: Split::Test, seed: 1, threads: 1 };
        let begin = Instant::now();
        let planned = plan_batch(&scenario, batch, search, &|_| ())?;
        let seconds = begin.elapsed().as_secs_f64() / episodes as f64;
        let mean = |of: fn(&Planned) -> f64| planned.iter().map(of).sum::<f64>() / episodes as f64;
        println!(
            "{budget:>10}   {:10.4}   {:9.4}   {:7.4}   {seconds:.3}",
            mean(|p| p.return_),
            mean(|p| p.rule_return),
            mean(|p| p.relaxed_return),
        );
    }
    Ok(())
}
