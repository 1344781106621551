//! Planners: search over dial schedules with a copy of the world.
