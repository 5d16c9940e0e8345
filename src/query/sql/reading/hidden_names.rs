//! Lets a name from a `WITH` hide the same name from a query around it. The planner refuses the second of
//! two, so it gets a name that no query has, and whoever reads from it keeps calling it by the old one.
//!
//! Knows the grammar, and which names come from `WITH`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor, VisitorMut,
};

/// What comes between a name and how many queries are around it.
const DEPTH_SEPARATOR: &str = " within ";

/// Walks through a query and all queries in it.
#[derive(Default)]
pub(super) struct HiddenNames {
    /// The names that are defined so far in the queries being walked through, from the outermost on, with new
    /// ones for those that hide others.
    open: Vec<HashMap<String, Option<String>>>,
    /// The names of queries from `WITH`, by address.
    named: HashMap<*const Query, (String, Option<String>)>,
}

impl VisitorMut for HiddenNames {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let given = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
        for given in given {
            let name = spelled(&given.alias.name);
            let hides = self.open.iter().any(|names| names.contains_key(&name));
            let new = hides.then(|| format!("{name}{DEPTH_SEPARATOR}{}", self.open.len()));
            if let Some(new) = &new {
                given.alias.name = Ident::with_quote('"', new);
            }
            let query: *const Query = given.query.as_ref();
            self.named.insert(query, (name, new));
        }
        self.open.push(HashMap::new());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.open.pop();
        let defined = self.named.remove(&std::ptr::from_ref(query));
        if let (Some((name, new)), Some(around)) = (defined, self.open.last_mut()) {
            around.insert(name, new);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = table
            && let [ObjectNamePart::Identifier(called)] = name.0.as_slice()
            && let Some(new) = self.new_name(&spelled(called))
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
    /// The new name of what is called `name` here, if it has one.
    fn new_name(&self, name: &str) -> Option<String> {
        let mut around = self.open.iter().rev();
        around.find_map(|names| names.get(name))?.clone()
    }
}

/// A name from `WITH` as it was before.
pub(super) fn old_name(name: &str) -> &str {
    name.rsplit_once(DEPTH_SEPARATOR).map_or(name, |(old, _)| old)
}

/// A name as the planner takes it.
fn spelled(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_ascii_lowercase(),
    }
}
