//! What the parameters of the interface mean. A parameter that means the same has the same name on every
//! route, so each name is explained once; the routes state its form and its default where they read it.

mod entries;
mod entry;

use entries::ENTRIES;
pub use entry::Entry;

/// The entry for `name`.
#[must_use]
pub fn entry(name: &str) -> Option<&'static Entry> {
    let place = ENTRIES.binary_search_by_key(&name, |entry| entry.name).ok()?;
    ENTRIES.get(place)
}

/// The other names under which `name` may be sent.
#[must_use]
pub fn aliases(name: &str) -> &'static [&'static str] {
    entry(name).map_or(&[], |entry| entry.aliases)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use utoipa::openapi::RefOr;

    use super::*;
    use crate::api::docs::common::{complete, operations};
    use crate::api::routes::{interface_routes, open_routes, ticket_routes};

    #[test]
    fn every_name_of_the_interface_has_an_entry_and_every_entry_is_a_name_of_the_interface() {
        let routes = interface_routes().merge(open_routes()).merge(ticket_routes());
        let mut document = routes.into_document();
        complete(&mut document);
        let mut names = BTreeSet::new();
        for operation in operations(&mut document) {
            for parameter in operation.parameters.iter().flatten() {
                let RefOr::T(parameter) = parameter else {
                    panic!("a parameter by reference")
                };
                names.insert(parameter.name.clone());
            }
        }
        let entries: BTreeSet<String> = ENTRIES.iter().map(|entry| entry.name.to_owned()).collect();
        assert_eq!(
            names, entries,
            "the names that routes use, and those that the glossary explains"
        );
    }

    #[test]
    fn entries_stand_in_order_and_once() {
        for pair in ENTRIES.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} before {}",
                pair[0].name,
                pair[1].name
            );
        }
    }

    #[test]
    fn sentences_have_neither_a_capital_within_nor_a_stop_at_their_end() {
        for entry in ENTRIES {
            assert!(
                entry.description.starts_with(char::is_uppercase),
                "{}",
                entry.name
            );
            assert!(!entry.absent.starts_with(char::is_uppercase), "{}", entry.name);
            for text in [entry.description, entry.absent] {
                assert!(!text.ends_with('.'), "{}: {text}", entry.name);
            }
        }
    }
}
