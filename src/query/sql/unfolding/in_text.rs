//! Limits how much a query reads once each name from `WITH` is replaced by its query: counted in its text,
//! before it is planned.
//!
//! Each name may read twice from the one before it, so two dozen names, for which the limit on tables
//! suffices, read millions of times. The planner already walks through all of it for a subquery in an
//! expression, so the count of the plan would come too late for it. Here only queries under a name count, not
//! what columns are computed from. Knows the grammar, and which names come from `WITH`.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart, Query, Visitor};

use crate::query::sql::naming::planned_name;

/// The most tables, functions and named queries, each counted as often as it is read from.
const MOST_READ: u64 = 4_096;

/// Walks through a query and all queries in it.
#[derive(Default)]
pub(in crate::query::sql) struct Repeated {
    /// The queries being walked through, from the outermost on.
    open: Vec<Open>,
    /// The names of queries from `WITH`, by address.
    named: HashMap<*const Query, String>,
}

#[derive(Default)]
struct Open {
    /// How much each name that is defined here reads.
    names: HashMap<String, u64>,
    reads: u64,
}

impl Repeated {
    fn take(&mut self, reads: u64) -> ControlFlow<String> {
        if let Some(open) = self.open.last_mut() {
            open.reads = open.reads.saturating_add(reads);
            if open.reads > MOST_READ {
                return ControlFlow::Break(format!(
                    "the query reads more than {MOST_READ} times once each name stands for the query behind \
                     it; read from fewer names more than once"
                ));
            }
        }
        ControlFlow::Continue(())
    }
}

impl Visitor for Repeated {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        let given = query.with.iter().flat_map(|with| &with.cte_tables);
        for given in given {
            let query: *const Query = given.query.as_ref();
            self.named.insert(query, planned_name(&given.alias.name));
        }
        self.open.push(Open {
            reads: 1,
            ..Open::default()
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        let reads = self.open.pop().map_or(0, |open| open.reads);
        match (
            self.named.remove(&std::ptr::from_ref(query)),
            self.open.last_mut(),
        ) {
            (Some(name), Some(around)) => {
                around.names.insert(name, reads);
                ControlFlow::Continue(())
            }
            _ => self.take(reads),
        }
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<String> {
        let named = match relation.0.as_slice() {
            [ObjectNamePart::Identifier(name)] => {
                let name = planned_name(name);
                let mut around = self.open.iter().rev();
                around.find_map(|open| open.names.get(&name).copied())
            }
            _ => None,
        };
        self.take(named.unwrap_or(1))
    }
}
