//! `information_schema`: the tables, the types of their columns, and the meaning of both.
//!
//! It lists only what its reader can name. Knows layouts and schemas of records.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema};
use datafusion::catalog::SchemaProvider;
use datafusion::common::Result;
use datafusion::datasource::{MemTable, TableProvider};

use crate::query::shape::Visibility;

use super::holdings::{CATALOG, Holdings, ListedTable, OWN, columns_of};

const NAMES: [&str; 3] = ["columns", "schemata", "tables"];

/// The schema `information_schema`.
pub(super) struct InformationSchema<Authority> {
    holdings: Arc<dyn Holdings<Authority>>,
}

impl<Authority> InformationSchema<Authority> {
    pub(super) fn of(holdings: Arc<dyn Holdings<Authority>>) -> Self {
        Self { holdings }
    }
}

impl<Authority> fmt::Debug for InformationSchema<Authority> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("InformationSchema")
            .field(&self.holdings)
            .finish()
    }
}

#[async_trait]
impl<Authority: 'static> SchemaProvider for InformationSchema<Authority> {
    fn table_names(&self) -> Vec<String> {
        NAMES.map(str::to_owned).to_vec()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if !self.table_exist(name) {
            return Ok(None);
        }
        let listed = self.holdings.listed().await?;
        let rows = match name {
            "schemata" => schemata(&listed),
            "tables" => tables(&listed),
            _ => columns(&listed)?,
        };
        Ok(Some(Arc::new(rows.table()?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        NAMES.contains(&name)
    }
}

fn schemata(listed: &[ListedTable]) -> Rows {
    let mut names: Vec<String> = listed.iter().map(ListedTable::schema).collect();
    names.extend([OWN, "information_schema"].map(str::to_owned));
    names.sort_unstable();
    names.dedup();
    let mut rows = Rows::default();
    rows.text("catalog_name", names.iter().map(|_| Some(CATALOG.to_owned())));
    rows.text("schema_name", names.into_iter().map(Some));
    rows
}

fn tables(listed: &[ListedTable]) -> Rows {
    let mut rows = Rows::default();
    rows.text("table_catalog", listed.iter().map(|_| Some(CATALOG.to_owned())));
    rows.text("table_schema", listed.iter().map(|table| Some(table.schema())));
    rows.text("table_name", listed.iter().map(|table| Some(table.name.clone())));
    rows.text("table_type", listed.iter().map(|_| Some("BASE TABLE".to_owned())));
    rows.text(
        "data_type",
        listed.iter().map(|table| {
            table
                .partitions
                .first()
                .map(|source| source.data_type.id.to_string())
        }),
    );
    rows.text("unit", listed.iter().map(ListedTable::unit));
    rows.text("comment", listed.iter().map(ListedTable::description));
    rows
}

fn columns(listed: &[ListedTable]) -> Result<Rows> {
    let mut all: Vec<(&ListedTable, i64, Field)> = Vec::new();
    let mut comments: Vec<Option<String>> = Vec::new();
    for table in listed {
        let sees = if table.of.is_none() {
            Visibility::Owner
        } else {
            Visibility::Others
        };
        let columns = columns_of(&table.partitions, sees)?;
        comments.extend(table.comments(&columns));
        let fields = columns.fields().iter().zip(1..);
        all.extend(fields.map(|(field, place)| (table, place, field.as_ref().clone())));
    }
    let mut rows = Rows::default();
    rows.text("table_catalog", all.iter().map(|_| Some(CATALOG.to_owned())));
    rows.text("table_schema", all.iter().map(|(table, ..)| Some(table.schema())));
    rows.text(
        "table_name",
        all.iter().map(|(table, ..)| Some(table.name.clone())),
    );
    rows.text(
        "column_name",
        all.iter().map(|(_, _, field)| Some(field.name().clone())),
    );
    let places: Int64Array = all.iter().map(|(_, place, _)| Some(*place)).collect();
    rows.column("ordinal_position", ArrowType::Int64, Arc::new(places));
    rows.text("is_nullable", all.iter().map(|_| Some("YES".to_owned())));
    rows.text(
        "data_type",
        all.iter()
            .map(|(_, _, field)| Some(field.data_type().to_string())),
    );
    rows.text("comment", comments.into_iter());
    Ok(rows)
}

/// A table under construction, column by column.
#[derive(Default)]
struct Rows {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl Rows {
    fn column(&mut self, name: &str, data_type: ArrowType, values: ArrayRef) {
        self.fields.push(Field::new(name, data_type, true));
        self.columns.push(values);
    }

    fn text(&mut self, name: &str, values: impl Iterator<Item = Option<String>>) {
        self.column(name, ArrowType::Utf8, Arc::new(values.collect::<StringArray>()));
    }

    fn table(self) -> Result<MemTable> {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), self.columns)?;
        MemTable::try_new(schema, vec![vec![batch]])
    }
}
