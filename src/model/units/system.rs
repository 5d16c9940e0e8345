//! The systems of units that answers can have.

use utoipa::ToSchema;

use crate::model::names::named;

named! {
    "units",
    /// The units in which values are returned.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ToSchema)]
    #[schema(rename_all = "lowercase")]
    pub enum UnitSystem {
        /// As they are stored.
        Catalogue = "catalogue",
        Metric = "metric",
        Us = "us",
    }
}
