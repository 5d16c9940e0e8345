//! What a query may read: names, permits and columns.
//!
//! The room above decides who may read what. Knows types; knows nothing of grammar or of plans of queries.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use futures::future::BoxFuture;

use crate::model::ids::PersonId;
use crate::model::permit::ReadPermit;
use crate::query::filter::Condition;
use crate::query::shape::{self, IdForm, Visibility};
use crate::query::together::Together;
use crate::query::{Prepared, Questions, TypedPartition};

use super::calls::Call;

/// The SQL catalog that contains everything.
pub(in crate::query::sql) const CATALOG: &str = "almanac";
/// The schema of the caller's own tables.
pub(in crate::query::sql) const OWN: &str = "own";

/// What a query may read, provided by the room that decides about reading.
///
/// Futures are written out: the compiler then proves once for all callers that they are `Send`. The bounds
/// that `async_trait` puts on each method would make it prove that anew for each.
pub trait Holdings<Authority>: fmt::Debug + Send + Sync {
    /// The source of rows.
    fn questions(&self) -> &Questions<Authority>;

    /// The holding called `name` among the tables of person `of`, or of the caller without one. `None` for
    /// what does not exist and equally for what may not be seen.
    fn find<'a>(
        &'a self,
        of: Option<PersonId>,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Holding<Authority>>>>;

    /// Every table that can be named, in the order of listings.
    fn listed(&self) -> BoxFuture<'_, Result<Vec<ListedTable>>>;

    /// Names of tables to suggest to somebody who misspelt one. They are the same for everybody.
    fn usual_names(&self) -> Vec<String>;

    /// The answer to the question behind a function, about the caller.
    fn answer<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Prepared>>;
}

/// A type of one person that may be read.
#[derive(Debug)]
pub struct Holding<Authority> {
    pub permit: ReadPermit<Authority>,
    pub partitions: Vec<TypedPartition>,
    /// Conditions that distinguish it among the records of its partitions.
    pub conditions: Vec<Condition>,
}

/// A table that can be named.
#[derive(Clone, Debug)]
pub struct ListedTable {
    /// The person who shares it; `None` if it is the reader's own.
    pub of: Option<PersonId>,
    pub name: String,
    /// The partitions of its rows, the type of the table first.
    pub partitions: Vec<TypedPartition>,
}

impl ListedTable {
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

    /// The descriptions of these columns in the schema of the records.
    pub(super) fn comments(&self, columns: &Schema) -> Vec<Option<String>> {
        let schema = self
            .partitions
            .first()
            .map(|partition| partition.data_type.schema.value());
        let properties = schema.as_ref().and_then(|schema| schema.get("properties"));
        let comment = |column: &str| {
            let description = properties?.get(column)?.get("description")?;
            Some(description.as_str()?.to_owned())
        };
        let columns = columns.fields().iter();
        columns.map(|column| comment(column.name())).collect()
    }
}

/// The columns of the raw answers of `partitions` at a given visibility.
pub(super) fn columns_of(partitions: &[TypedPartition], sees: Visibility) -> Result<SchemaRef> {
    let one = |partition: &TypedPartition| {
        let layout = &partition.data_type.layout;
        shape::schema(layout, IdForm::Text, sees, shape::everything)
    };
    let schemas = partitions.iter().map(one).collect::<Result<Vec<_>>>()?;
    let schema = match schemas.as_slice() {
        [schema] => Arc::clone(schema),
        _ => Together::of(schemas, []).schema(),
    };
    Ok(nullable(&schema))
}

/// Columns that are all nullable: a plan may promise more, but that is not part of the table.
pub(super) fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
