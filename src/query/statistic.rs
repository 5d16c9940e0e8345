//! Statistics of values: what an aggregate or the totals of sleep compute of a period.

use crate::model::names::named;

named! {
    // They are called functions where they are asked for.
    "function",
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Statistic {
        Sum = "sum",
        Avg = "avg",
        Min = "min",
        Max = "max",
    }
}
