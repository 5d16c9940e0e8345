//! Adds names to positions: `address` and `location_details` for rows that have a latitude and a longitude.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray, StructArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Fields, Float64Type, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::physical_plan::PlanProperties;
use futures::stream::{BoxStream, StreamExt as _};

use crate::model::geo::Position;
use crate::model::ids::PersonId;
use crate::query::Prepared;
use crate::query::operator::{Input, Operator, Plan, Step, Task, one_partition, only};

use super::fixes::missing;
use super::geocoder::{Geocoder, Place};

/// How many positions of one answer are looked up at once.
const AT_ONCE: usize = 8;

/// The rows of an answer with the names of their places, for `reader`. `columns`: the names of the latitude
/// and the longitude.
#[must_use]
pub fn with_names(
    prepared: Prepared,
    geocoder: Arc<dyn Geocoder>,
    reader: PersonId,
    columns: (&'static str, &'static str),
) -> Prepared {
    let step = NamedPlaces {
        input: Arc::clone(&prepared.schema),
        geocoder,
        reader,
        columns,
    };
    let plan: Plan = Arc::new(Operator::over(step, vec![prepared.plan]));
    Prepared::of(plan, prepared.states, prepared.scope)
}

#[derive(Clone, Debug)]
struct NamedPlaces {
    input: SchemaRef,
    geocoder: Arc<dyn Geocoder>,
    reader: PersonId,
    columns: (&'static str, &'static str),
}

impl NamedPlaces {
    fn schema(&self) -> SchemaRef {
        let details = described(&[]).map_or(ArrowType::Null, |none| none.data_type().clone());
        let mut fields = self.input.fields().to_vec();
        fields.push(Arc::new(Field::new("address", ArrowType::Utf8, true)));
        fields.push(Arc::new(Field::new("location_details", details, true)));
        Arc::new(Schema::new_with_metadata(fields, self.input.metadata().clone()))
    }
}

impl Step for NamedPlaces {
    const NAME: &'static str = "NamedExec";

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        one_partition(self.schema(), None)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let schema = task.schema();
        let rows = only(inputs)?.open()?;
        let named = rows.then(move |batch| {
            let (step, schema) = (self.clone(), Arc::clone(&schema));
            async move {
                let batch = batch?;
                let places = step.places(&batch).await?;
                let mut columns = batch.columns().to_vec();
                let addresses = places
                    .iter()
                    .map(|place| place.as_deref().map(|place| place.formatted.as_str()));
                columns.push(Arc::new(addresses.collect::<StringArray>()));
                columns.push(Arc::new(described(&places)?));
                Ok(RecordBatch::try_new(schema, columns)?)
            }
        });
        Ok(named.boxed())
    }
}

impl NamedPlaces {
    /// The place of each row. Repeated positions are looked up once.
    async fn places(&self, batch: &RecordBatch) -> Result<Vec<Option<Arc<Place>>>> {
        let degrees = |name: &str| {
            batch
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<Float64Type>().cloned())
                .ok_or_else(|| missing(name))
        };
        let (latitudes, longitudes) = (degrees(self.columns.0)?, degrees(self.columns.1)?);
        let position = |row: usize| {
            (latitudes.is_valid(row) && longitudes.is_valid(row))
                .then(|| Position::new(latitudes.value(row), longitudes.value(row)))
        };
        let positions: Vec<Option<Position>> = (0..batch.num_rows()).map(position).collect();
        let mut distinct = positions.clone();
        distinct.dedup();
        let asked: Vec<Option<Arc<Place>>> = futures::stream::iter(distinct.iter().copied())
            .map(|position| self.place(position))
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut runs = distinct.iter().zip(asked).peekable();
        Ok(positions
            .iter()
            .map(|position| {
                while runs.next_if(|(of_run, _)| *of_run != position).is_some() {}
                runs.peek().and_then(|(_, place)| place.clone())
            })
            .collect())
    }

    async fn place(&self, position: Option<Position>) -> Option<Arc<Place>> {
        // A failed lookup leaves the name empty; the geocoder has already reported the reason.
        self.geocoder.locate(self.reader, position?).await.ok().flatten()
    }
}

/// Members of one object with their values in each row.
struct Object<'a> {
    places: &'a [Option<Arc<Place>>],
    members: Vec<(Field, ArrayRef)>,
}

impl<'a> Object<'a> {
    const fn new(places: &'a [Option<Arc<Place>>]) -> Self {
        Self {
            places,
            members: Vec::new(),
        }
    }

    fn text(self, name: &str, text: impl Fn(&Place) -> Option<String>) -> Self {
        let texts = self.places.iter().map(|place| place.as_deref().and_then(&text));
        let texts = Arc::new(texts.collect::<StringArray>());
        self.member(name, texts)
    }

    fn number(self, name: &str, number: impl Fn(&Place) -> f64) -> Self {
        let numbers = self.places.iter().map(|place| place.as_deref().map(&number));
        let numbers = Arc::new(numbers.collect::<Float64Array>());
        self.member(name, numbers)
    }

    fn object(self, name: &str, object: Self) -> Result<Self> {
        let object = object.finish()?;
        Ok(self.member(name, Arc::new(object)))
    }

    fn member(mut self, name: &str, values: ArrayRef) -> Self {
        self.members
            .push((Field::new(name, values.data_type().clone(), true), values));
        self
    }

    /// Null where there is no place.
    fn finish(self) -> Result<StructArray> {
        let known: NullBuffer = self.places.iter().map(Option::is_some).collect::<Vec<_>>().into();
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = self.members.into_iter().unzip();
        Ok(StructArray::try_new_with_length(
            Fields::from(fields),
            columns,
            Some(known),
            self.places.len(),
        )?)
    }
}

/// `location_details` of each row.
fn described(places: &[Option<Arc<Place>>]) -> Result<StructArray> {
    let spelt = |place: &Place| Position::new(place.latitude, place.longitude).sexagesimal();
    let components = Object::new(places)
        .text("_type", |place| place.kind.clone())
        .text("city", |place| place.city.clone())
        .text("county", |place| place.county.clone())
        .text("state", |place| place.state.clone())
        .text("state_code", |place| place.state_code.clone())
        .text("postcode", |place| place.postcode.clone())
        .text("country", |place| place.country.clone())
        .text("country_code", |place| place.country_code.clone());
    let geometry = Object::new(places)
        .number("lat", |place| place.latitude)
        .number("lng", |place| place.longitude);
    let degrees = Object::new(places)
        .text("lat", |place| Some(spelt(place).0))
        .text("lng", |place| Some(spelt(place).1));
    let zone = Object::new(places).text("name", |place| place.time_zone.clone());
    let annotations = Object::new(places)
        .object("DMS", degrees)?
        .object("timezone", zone)?;
    Object::new(places)
        .text("formatted", |place| Some(place.formatted.clone()))
        .object("components", components)?
        .object("geometry", geometry)?
        .number("distance_m", |place| place.distance)
        .object("annotations", annotations)?
        .text("attribution", |place| Some(place.attribution.to_string()))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_4_7_details_have_their_members_also_where_nothing_is_known() {
        let known = Place {
            formatted: "Reykjavik, Iceland".to_owned(),
            country_code: Some("is".to_owned()),
            latitude: 64.1466,
            longitude: -21.9426,
            distance: 12.5,
            ..Place::default()
        };
        let details = described(&[None, Some(Arc::new(known))]).unwrap();
        assert!(details.is_null(0) && details.is_valid(1));
        let names: Vec<&str> = details.column_names();
        assert_eq!(
            names,
            [
                "formatted",
                "components",
                "geometry",
                "distance_m",
                "annotations",
                "attribution"
            ]
        );
        assert_eq!(
            described(&[]).unwrap().data_type(),
            details.data_type(),
            "the shape does not depend on the rows"
        );
    }
}
