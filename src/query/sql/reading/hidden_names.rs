//! Lets a name from a `WITH` hide the same name from a query around it. The planner refuses the second of
//! two, so it gets a name that no query has, and whoever reads from it keeps calling it by the old one.
//! Two of one name in the same `WITH` are refused.
//!
//! Knows the grammar, and which names come from `WITH`.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor, Visitor, VisitorMut,
};

use super::refusal::{Refusal, Where};
use crate::query::sql::naming::planned_name;
use crate::query::sql::walking::look_through;

/// What comes between a name and how many queries are around it.
const DEPTH_SEPARATOR: &str = " within ";

/// Walks through a query and all queries in it.
pub(super) struct HiddenNames {
    /// The names of what is read and defined anywhere in the query.
    taken: HashSet<String>,
    /// The names that are defined so far in the queries being walked through, from the outermost on, with new
    /// ones for those that hide others.
    open: Vec<HashMap<String, Option<String>>>,
    /// The names of queries from `WITH`, by address.
    named: HashMap<*const Query, (String, Option<String>)>,
}

impl VisitorMut for HiddenNames {
    type Break = Refusal;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Refusal> {
        let mut defined = HashSet::new();
        let given = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
        for given in given {
            let name = planned_name(&given.alias.name);
            if !defined.insert(name.clone()) {
                return ControlFlow::Break(Refusal {
                    message: format!("WITH defines {name} more than once"),
                    place: Where::At(given.alias.name.span.start),
                });
            }
            let hides = self.open.iter().any(|names| names.contains_key(&name));
            let new = hides.then(|| self.unlike_others(&name));
            if let Some(new) = &new {
                given.alias.name = Ident::with_quote('"', new);
            }
            let query: *const Query = given.query.as_ref();
            self.named.insert(query, (name, new));
        }
        self.open.push(HashMap::new());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Refusal> {
        self.open.pop();
        let defined = self.named.remove(&std::ptr::from_ref(query));
        if let (Some((name, new)), Some(around)) = (defined, self.open.last_mut()) {
            around.insert(name, new);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Refusal> {
        if let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = table
            && let [ObjectNamePart::Identifier(called)] = name.0.as_slice()
            && let Some(new) = self.new_name(&planned_name(called))
        {
            let old = called.clone();
            alias.get_or_insert_with(|| TableAlias {
                explicit: false,
                name: old,
                columns: Vec::new(),
                at: None,
            });
            *name = ObjectName::from(vec![Ident::with_quote('"', new)]);
        }
        ControlFlow::Continue(())
    }
}

impl HiddenNames {
    pub(super) fn of(query: &Query) -> Self {
        let mut taken = TakenNames::default();
        let ControlFlow::Continue(()) = look_through(query, &mut taken);
        Self {
            taken: taken.0,
            open: Vec::new(),
            named: HashMap::new(),
        }
    }

    /// A name for what is called `name` here, which nothing in the query has.
    fn unlike_others(&self, name: &str) -> String {
        let mut new = format!("{name}{DEPTH_SEPARATOR}{}", self.open.len());
        while self.taken.contains(&new) {
            new.push('\'');
        }
        new
    }

    /// The new name of what is called `name` here, if it has one.
    fn new_name(&self, name: &str) -> Option<String> {
        let mut around = self.open.iter().rev();
        around.find_map(|names| names.get(name))?.clone()
    }
}

/// The names of what a query reads and defines.
#[derive(Default)]
struct TakenNames(HashSet<String>);

impl Visitor for TakenNames {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        let given = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(given.map(|given| planned_name(&given.alias.name)));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Infallible> {
        if let [ObjectNamePart::Identifier(name)] = relation.0.as_slice() {
            self.0.insert(planned_name(name));
        }
        ControlFlow::Continue(())
    }
}
