//! Writes the windows that a `WINDOW` clause names where they are used.
//!
//! Of a window that builds on a named one, `(w ORDER BY a)`, the planner takes only what is written beside
//! the name, and it replaces names in what is selected alone: elsewhere an aggregate would not be one over a
//! window any more. As in SQL, a window has the partitions of the one that it builds on, the order of the one
//! that has an order, and a frame of its own. Knows the grammar only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SetExpr, VisitMut, VisitorMut,
    WindowSpec, WindowType,
};

use super::refusal::{Refusal, Where};
use crate::query::sql::naming::planned_name;
use crate::query::sql::walking::{change_through, look_at_expressions};

/// The most parts that all windows have together where they are written in the place of a name.
const MOST_WRITTEN: usize = 1 << 14;

/// Walks through a query and all queries in it.
#[derive(Default)]
pub(super) struct NamedWindows {
    written: usize,
}

impl VisitorMut for NamedWindows {
    type Break = Refusal;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Refusal> {
        if select.named_window.is_empty() {
            return ControlFlow::Continue(());
        }
        let defined = self.defined(&mut select.named_window)?;
        self.write(&mut select.distinct, &defined)?;
        self.write(&mut select.projection, &defined)?;
        self.write(&mut select.selection, &defined)?;
        self.write(&mut select.group_by, &defined)?;
        self.write(&mut select.having, &defined)?;
        self.write(&mut select.qualify, &defined)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Refusal> {
        let SetExpr::Select(select) = query.body.as_mut() else {
            return ControlFlow::Continue(());
        };
        if select.named_window.is_empty() {
            return ControlFlow::Continue(());
        }
        let defined = self.defined(&mut select.named_window)?;
        self.write(&mut query.order_by, &defined)
    }
}

/// A window and its name.
type Named = (String, WindowSpec);

impl NamedWindows {
    /// The windows of a clause, each of which may build on those before it.
    fn defined(&mut self, clause: &mut [NamedWindowDefinition]) -> ControlFlow<Refusal, Vec<Named>> {
        let mut defined: Vec<Named> = Vec::new();
        for NamedWindowDefinition(name, meant) in clause {
            let window = match meant {
                NamedWindowExpr::NamedWindow(same) => self.copied(&defined, same)?,
                NamedWindowExpr::WindowSpec(window) => {
                    self.build(window, &defined)?;
                    window.clone()
                }
            };
            *meant = NamedWindowExpr::WindowSpec(window.clone());
            let name_taken = planned_name(name);
            if find(&defined, name).is_some() {
                return refused(name, format!("WINDOW defines {name_taken} more than once"));
            }
            defined.push((name_taken, window));
        }
        ControlFlow::Continue(defined)
    }

    /// Replaces the names of windows in a part of their SELECT.
    fn write(&mut self, part: &mut impl VisitMut, defined: &[Named]) -> ControlFlow<Refusal> {
        let mut writing = Writing {
            windows: self,
            defined,
            within: 0,
        };
        change_through(part, &mut writing)
    }

    /// Puts what a window builds on in the place of its name, if it builds on one.
    fn build(&mut self, window: &mut WindowSpec, defined: &[Named]) -> ControlFlow<Refusal> {
        let Some(name) = window.window_name.take() else {
            return ControlFlow::Continue(());
        };
        let base = self.copied(defined, &name)?;
        if !window.partition_by.is_empty() {
            let message = format!("what builds on window {name} has its partitions, and no PARTITION BY");
            return refused(&name, message);
        }
        if !window.order_by.is_empty() && !base.order_by.is_empty() {
            let message = format!("what builds on window {name} has its order, and no other ORDER BY");
            return refused(&name, message);
        }
        if base.window_frame.is_some() {
            let message = format!(
                "nothing builds on window {name}, which has a frame; write OVER {name}, or all of it"
            );
            return refused(&name, message);
        }
        window.partition_by = base.partition_by;
        if window.order_by.is_empty() {
            window.order_by = base.order_by;
        }
        ControlFlow::Continue(())
    }

    /// The window of this name, which counts each time.
    fn copied(&mut self, defined: &[Named], name: &Ident) -> ControlFlow<Refusal, WindowSpec> {
        let Some(window) = find(defined, name) else {
            return refused(name, format!("WINDOW defines no {name} before this"));
        };
        look_at_expressions(window, &mut |_| {
            self.written += 1;
            if self.written <= MOST_WRITTEN {
                return ControlFlow::Continue(());
            }
            let message = format!(
                "the windows up to here have more than {MOST_WRITTEN} parts once each name stands for the \
                 window behind it; name long windows less often"
            );
            refused(name, message)
        })?;
        ControlFlow::Continue(window.clone())
    }
}

/// Walks through a part of a SELECT. In the queries within it, names of its windows are not known.
struct Writing<'w> {
    windows: &'w mut NamedWindows,
    defined: &'w [Named],
    /// In how many queries within it the walk is.
    within: u32,
}

impl VisitorMut for Writing<'_> {
    type Break = Refusal;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Refusal> {
        self.within += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Refusal> {
        self.within -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Refusal> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        if self.within > 0 {
            return ControlFlow::Continue(());
        }
        match &mut function.over {
            Some(WindowType::NamedWindow(name)) if find(self.defined, name).is_some() => {
                let window = self.windows.copied(self.defined, name)?;
                function.over = Some(WindowType::WindowSpec(window));
                ControlFlow::Continue(())
            }
            Some(WindowType::WindowSpec(window)) => match &window.window_name {
                Some(name) if find(self.defined, name).is_some() => self.windows.build(window, self.defined),
                _ => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        }
    }
}

fn find<'a>(defined: &'a [Named], name: &Ident) -> Option<&'a WindowSpec> {
    let wanted = planned_name(name);
    let found = defined.iter().find(|(known, _)| *known == wanted);
    found.map(|(_, window)| window)
}

fn refused<T>(name: &Ident, message: String) -> ControlFlow<Refusal, T> {
    let place = Where::At(name.span.start);
    ControlFlow::Break(Refusal { message, place })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    /// What is selected once windows are written out, or why it is refused.
    fn written(text: &str) -> Result<String, String> {
        let mut statements = Parser::parse_sql(&GenericDialect {}, text).unwrap();
        let Statement::Query(query) = &mut statements[0] else {
            panic!("{text}");
        };
        if let ControlFlow::Break(refusal) = change_through(query, &mut NamedWindows::default()) {
            return Err(refusal.message);
        }
        let text = query.to_string();
        Ok(text.split(" FROM t").next().unwrap().to_owned())
    }

    #[test]
    fn a_window_has_the_partitions_and_the_order_of_the_one_that_it_builds_on() {
        for (used, clause, expected) in [
            ("w", "w AS (PARTITION BY k)", "PARTITION BY k"),
            ("(W)", "w AS (PARTITION BY k)", "PARTITION BY k"),
            (
                "(w ORDER BY x)",
                "w AS (PARTITION BY k)",
                "PARTITION BY k ORDER BY x",
            ),
            (
                "(w ROWS 1 PRECEDING)",
                "w AS (PARTITION BY k ORDER BY x)",
                "PARTITION BY k ORDER BY x ROWS 1 PRECEDING",
            ),
            (
                "v",
                "w AS (PARTITION BY k), v AS (w ORDER BY x)",
                "PARTITION BY k ORDER BY x",
            ),
            (
                "w",
                "w AS (ORDER BY x ROWS 1 PRECEDING)",
                "ORDER BY x ROWS 1 PRECEDING",
            ),
        ] {
            let text = format!("SELECT sum(x) OVER {used} FROM t WINDOW {clause}");
            assert_eq!(
                written(&text).unwrap(),
                format!("SELECT sum(x) OVER ({expected})")
            );
        }
    }

    #[test]
    fn what_builds_on_a_window_changes_nothing_of_it() {
        for (used, clause, word) in [
            ("(w PARTITION BY x)", "w AS (PARTITION BY k)", "no PARTITION BY"),
            ("(w ORDER BY x)", "w AS (ORDER BY k)", "no other ORDER BY"),
            ("(w)", "w AS (ORDER BY k ROWS 1 PRECEDING)", "has a frame"),
            ("v", "v AS (w ORDER BY x), w AS (ORDER BY k)", "defines no w"),
            ("w", "w AS (ORDER BY k), W AS (ORDER BY x)", "more than once"),
        ] {
            let text = format!("SELECT sum(x) OVER {used} FROM t WINDOW {clause}");
            let message = written(&text).unwrap_err();
            assert!(message.contains(word), "{text}: {message}");
        }
    }

    #[test]
    fn a_name_is_that_of_a_clause_of_the_same_query() {
        let inner = "(SELECT sum(y) OVER w AS s FROM u WINDOW w AS (ORDER BY y))";
        let text = format!("SELECT {inner}, sum(x) OVER w FROM t WINDOW w AS (ORDER BY x)");
        let all = written(&text).unwrap();
        assert!(all.contains("sum(y) OVER (ORDER BY y)"), "{all}");
        assert!(all.ends_with("sum(x) OVER (ORDER BY x)"), "{all}");
        let all = written("SELECT (SELECT sum(y) OVER w), x FROM t WINDOW w AS (ORDER BY x)").unwrap();
        assert!(all.contains("sum(y) OVER w"), "{all}");
        let text = "SELECT x FROM t WINDOW w AS (ORDER BY x) ORDER BY sum(x) OVER w";
        let mut statements = Parser::parse_sql(&GenericDialect {}, text).unwrap();
        assert!(change_through(&mut statements, &mut NamedWindows::default()).is_continue());
        let all = statements[0].to_string();
        assert!(all.ends_with("ORDER BY sum(x) OVER (ORDER BY x)"), "{all}");
    }

    #[test]
    fn long_windows_are_written_only_so_often() {
        let parts = vec!["x"; 100].join(", ");
        let text = |times: usize| {
            let used = vec!["sum(x) OVER w"; times].join(", ");
            format!("SELECT {used} FROM t WINDOW w AS (PARTITION BY {parts})")
        };
        assert!(written(&text(100)).is_ok());
        let message = written(&text(200)).unwrap_err();
        assert!(message.contains("name long windows less often"), "{message}");
    }
}
