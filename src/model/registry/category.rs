//! The categories of data types, under which catalogues are searched.

use serde::Serialize;
use utoipa::ToSchema;

use crate::model::names::named;

named! {
    "category",
    /// A category of data types.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Category {
        Annotations = "annotations",
        Sleep = "sleep",
        Healthkit = "healthkit",
        Health = "health",
        Mindfulness = "mindfulness",
        Focus = "focus",
        /// The name of the interface's maker, which no type here has.
        Fulcra = "fulcra",
        Location = "location",
        /// What the person defined.
        UserConfigured = "user_configured",
        /// What another person shares.
        SharedType = "shared_type",
        /// What own types and annotations are made from.
        BaseType = "base_type",
    }
}
