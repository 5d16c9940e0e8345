//! What a query may read, as it is known here: by names, permits and columns.
//!
//! Who may read what is decided above. Knows types; knows nothing of grammar or of plans of queries.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::physical_plan::empty::EmptyExec;
use futures::future::BoxFuture;

use crate::model::ids::PersonId;
use crate::model::permit::ReadPermit;
use crate::query::filter::Condition;
use crate::query::shape::{self, IdForm, Visibility};
use crate::query::together::common_schema;
use crate::query::{Partition, Prepared, Questions};

use super::calls::Call;

/// All that there is, in the words of SQL.
pub(super) const CATALOG: &str = "almanac";
/// What belongs to whoever asks.
pub(super) const OWN: &str = "own";

/// What a query may read, from the room that decides about reading.
///
/// Futures are written out: that one may go to another thread is then proven once for all of its callers,
/// where the conditions which `async_trait` puts on each method have the compiler prove it anew for each.
pub trait Holdings<Authority>: fmt::Debug + Send + Sync {
    /// Where rows come from.
    fn questions(&self) -> &Questions<Authority>;

    /// What stands under a name among what is `of` a person, or of whoever asks where none is named. `None`
    /// is the answer both for what there is not and for what may not be seen.
    fn find<'a>(
        &'a self,
        of: Option<PersonId>,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Holding<Authority>>>>;

    /// Every table that can be named, in the order in which they are listed.
    fn listed(&self) -> BoxFuture<'_, Result<Vec<Listed>>>;

    /// Names of tables for somebody who misspelt one. They are everybody's.
    fn usual_names(&self) -> Vec<String>;

    /// The answer to the question that a function stands for, about whoever asks.
    fn answer<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Prepared>>;
}

/// A type of one person that may be read.
#[derive(Debug)]
pub struct Holding<Authority> {
    pub permit: ReadPermit<Authority>,
    pub partitions: Vec<Partition>,
    /// What singles it out among the records of its partitions.
    pub conditions: Vec<Condition>,
}

/// A table that can be named.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The person who shares it; none where it is the reader's own.
    pub of: Option<PersonId>,
    pub name: String,
    /// What its rows are, the type of the table first.
    pub partitions: Vec<Partition>,
}

impl Listed {
    pub(super) fn schema(&self) -> String {
        self.of
            .map_or_else(|| OWN.to_owned(), |person| person.0.to_string())
    }

    pub(super) fn description(&self) -> Option<String> {
        let description = &self.partitions.first()?.data_type.description;
        (!description.is_empty()).then(|| description.clone())
    }

    pub(super) fn unit(&self) -> Option<String> {
        self.partitions.first()?.data_type.metric.as_ref()?.unit.clone()
    }

    /// What is said of a column in the schema of the records.
    pub(super) fn comment(&self, column: &str) -> Option<String> {
        let properties = self.partitions.first()?.data_type.schema.get("properties")?;
        Some(properties.get(column)?.get("description")?.as_str()?.to_owned())
    }
}

/// The columns of the raw answers of `partitions` to somebody who sees that much.
pub(super) fn columns_of(partitions: &[Partition], sees: Visibility) -> Result<SchemaRef> {
    let one = |partition: &Partition| -> Result<SchemaRef> {
        let layout = &partition.data_type.layout;
        let rows = Arc::new(EmptyExec::new(Arc::clone(&layout.storage)));
        let plan = shape::project(rows, layout, IdForm::Text, sees, shape::everything)?;
        Ok(plan.schema())
    };
    let schemas = partitions.iter().map(one).collect::<Result<Vec<_>>>()?;
    let schema = match schemas.as_slice() {
        [schema] => Arc::clone(schema),
        _ => common_schema(schemas.into_iter()),
    };
    Ok(nullable(&schema))
}

/// The same columns, any of which may be null: what a plan promises beyond that is its own affair.
pub(super) fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
