use oncall_env::*;
use std::time::Instant;
use oncall_ppo::{collect::Collector, config::Config, params::Layout};
use oncall_weights::{Heads, Scratch};
fn main() {
    let s = shipped("spike").unwrap();
    let mut env = AnyVecEnv::new(s.world.clone(), 256, Options { autoreset: Autoreset::SameStep, ..Options::default() }).unwrap();
    let mut c = env.columns();
    env.reset(Seeds::Root(1), None, &mut c.borrow_reset()).unwrap();
    let keep = vec![0i8; 256 * 8];
    let t = Instant::now();
    for _ in 0..480 { let mut cc = Columns { observations: &mut c.observations, rewards: &mut c.rewards, terminated: &mut c.terminated, truncated: &mut c.truncated, final_observations: Some(&mut c.final_observations), ..Columns::default() }; env.step(Actions::Stops8(&keep), &mut cc).unwrap(); }
    println!("env us/step {:.3}", t.elapsed().as_secs_f64() * 1e6 / (480.0 * 256.0));
    let cfg = Config { rows: 256, ..Config::default() };
    let spec = s.world.spec();
    let layout = Layout::new(env.obs_len(), 64, Heads::of(spec).logits());
    println!("obs {} logits {} params {}", env.obs_len(), Heads::of(spec).logits(), layout.len());
    let nets = layout.networks(&layout.start(spec, 1));
    let mut sc = Scratch::default();
    let t = Instant::now();
    for _ in 0..480 { nets.actor.forward(&c.observations, &mut sc); }
    println!("actor us/row {:.3}", t.elapsed().as_secs_f64() * 1e6 / (480.0 * 256.0));
    let heads = Heads::of(spec);
    let logits = nets.actor.forward(&c.observations, &mut sc).to_vec();
    let mut stops = vec![0i8; 8]; let mut mem = vec![];
    let t = Instant::now();
    for m in 0..480u64 { for r in 0..256 { let mut st = oncall_core::EpisodeKey::new(1, r as u64, Default::default(), Default::default()).stream(oncall_core::streams::Purpose::Policy, m); heads.sample(&logits[r * 64..], &mut st, &mut mem, &mut stops); } }
    println!("sample us/row {:.3}", t.elapsed().as_secs_f64() * 1e6 / (480.0 * 256.0));
    let mut col = Collector::new(&s, &cfg, 1, 1).unwrap();
    let mut ro = oncall_rollout::Rollout::new(col.shape());
    for i in 0..5 { let t = Instant::now(); col.collect(&nets, i * 64, &mut ro).unwrap(); println!("collect us/step {:.3}", t.elapsed().as_secs_f64() * 1e6 / (64.0 * 256.0)); }
}
