//! The parameters that a route takes: name, form of the value, and whether each is required. The
//! documentation is made from these. Knows OpenAPI; knows nothing of what was sent.

use serde_json::{Value, json};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{
    AllOfBuilder, ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type,
};
use utoipa::openapi::{Ref, RefOr, Required};

use super::choices::Words;
use super::glossary;

/// One parameter that a route takes.
#[derive(Clone, Copy, Debug)]
pub struct ReadParam {
    pub name: &'static str,
    /// The form of the value, or of each value if there may be several.
    pub form: Form,
    pub many: bool,
    pub need: Need,
}

/// What a value looks like.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    Text,
    Flag,
    /// A whole number between the two.
    Whole(i64, i64),
    /// A number between the two.
    Number(f64, f64),
    Uuid,
    Instant,
    Word(Words),
}

/// Whether a parameter may be left out, and what that means.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    Required,
    /// The glossary says what its absence means.
    Optional,
    Or(Literal),
}

/// The default of a parameter that is not sent.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(&'static str),
}

impl Form {
    /// Any whole number.
    pub const ANY_WHOLE: Self = Self::Whole(i64::MIN, i64::MAX);

    fn schema(self) -> ObjectBuilder {
        let object = ObjectBuilder::new();
        let text = |object: ObjectBuilder, format: KnownFormat| {
            object
                .schema_type(Type::String)
                .format(Some(SchemaFormat::KnownFormat(format)))
        };
        match self {
            Self::Text => object.schema_type(Type::String),
            Self::Flag => object.schema_type(Type::Boolean),
            Self::Whole(least, most) => object
                .schema_type(Type::Integer)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                .minimum((least != i64::MIN).then_some(least))
                .maximum((most != i64::MAX).then_some(most)),
            Self::Number(least, most) => object
                .schema_type(Type::Number)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Double)))
                .minimum(least.is_finite().then_some(least))
                .maximum(most.is_finite().then_some(most)),
            Self::Uuid => text(object, KnownFormat::Uuid),
            Self::Instant => text(object, KnownFormat::DateTime),
            Self::Word(words) => object
                .schema_type(Type::String)
                .enum_values(Some((words.names)())),
        }
    }

    /// The schema, with the default if there is one.
    fn schema_or(self, default: Option<Value>) -> RefOr<Schema> {
        let component = match self {
            Self::Word(words) => words.component.map(Ref::from_schema_name),
            _ => None,
        };
        match (component, default) {
            (Some(component), None) => RefOr::Ref(component),
            (Some(component), default) => {
                RefOr::T(AllOfBuilder::new().item(component).default(default).into())
            }
            (None, default) => RefOr::T(self.schema().default(default).into()),
        }
    }
}

impl Literal {
    fn json(self) -> Value {
        match self {
            Self::Flag(flag) => json!(flag),
            Self::Whole(number) => json!(number),
            Self::Number(number) => json!(number),
            Self::Text(text) => json!(text),
        }
    }
}

impl ReadParam {
    /// The parameter as the documentation shows it.
    #[must_use]
    pub fn parameter(&self) -> Parameter {
        let default = match self.need {
            Need::Or(default) => Some(default.json()),
            Need::Required | Need::Optional => None,
        };
        let schema = if self.many {
            let items = ArrayBuilder::new().items(self.form.schema_or(None));
            RefOr::T(items.default(default.map(|default| json!([default]))).into())
        } else {
            self.form.schema_or(default)
        };
        let required = match self.need {
            Need::Required => Required::True,
            Need::Optional | Need::Or(_) => Required::False,
        };
        let parameter = ParameterBuilder::new()
            .name(self.name)
            .parameter_in(ParameterIn::Query)
            .required(required)
            .schema(Some(schema))
            .build();
        match glossary::entry(self.name) {
            Some(entry) => entry.explained(parameter, self.many, matches!(self.need, Need::Optional)),
            None => parameter,
        }
    }
}
