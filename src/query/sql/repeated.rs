//! How much a query reads once each name that `WITH` gives stands for the query behind it.
//!
//! Each line may read twice from the one before, so that the two dozen for which there are tables enough read
//! millions of times. The planner already goes through all of it for a query in an expression, so it is
//! counted in the text. Knows the grammar, and of names whose they are.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart, Query, Visitor};

/// So many tables, functions and queries under names, each as often as it is read from.
const MOST_READ: u64 = 4_096;

/// Goes through a query with all queries in it.
#[derive(Default)]
pub(super) struct Repeated {
    /// Queries that are gone through, from the outermost on.
    open: Vec<Open>,
    /// The names of those that `WITH` gives one, by where they are.
    named: HashMap<*const Query, String>,
}

#[derive(Default)]
struct Open {
    /// How much is read by each name that was given here.
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
            self.named.insert(query, given.alias.name.value.to_lowercase());
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
                let name = name.value.to_lowercase();
                let mut around = self.open.iter().rev();
                around.find_map(|open| open.names.get(&name).copied())
            }
            _ => None,
        };
        self.take(named.unwrap_or(1))
    }
}
