//! What a caller's SQL query may read: every table and every function asks for its permit here.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use futures::future::{BoxFuture, FutureExt, TryFutureExt};

use crate::api::app::AppState;
use crate::api::data::listed_type::ListedType;
use crate::api::data::partitions::partitions_of;
use crate::api::data::shared_types::types_shown;
use crate::api::problem::ApiError;
use crate::auth::grants::{Denied, GrantAuthority};
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::registry::DataType;
use crate::model::time::TimeRange;
use crate::people::types::{ResolvedType, TypesError};
use crate::query::sql::{Call, Holding, Holdings, ListedTable, QuestionFunction};
use crate::query::{Prepared, Questions, TypedPartition};

use super::names::{resolve_name, snake};

/// What one caller may read.
pub(super) struct Readings {
    pub(super) app: AppState,
    pub(super) reader: Reader,
}

impl Readings {
    pub(super) fn new(app: &AppState, reader: &Reader) -> Self {
        Self {
            app: Arc::clone(app),
            reader: reader.clone(),
        }
    }

    async fn found(
        &self,
        of: Option<PersonId>,
        name: &str,
    ) -> Result<Option<Holding<GrantAuthority>>, ApiError> {
        let (app, reader) = (&self.app, &self.reader);
        let owner = reader.asks_about(of);
        let Some(id) = resolve_name(app, reader, owner, name).await? else {
            return Ok(None);
        };
        let permit = match app.grants.windows(reader, owner, &id, TimeRange::ALWAYS).await {
            Ok(permit) => permit,
            Err(Denied::Refused(_) | Denied::Beyond(_) | Denied::BeyondGroup(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let resolved: ResolvedType = match app.types.find(owner, id.as_str()).await {
            Ok(resolved) if resolved.data_type.queryable => resolved,
            Ok(_) | Err(TypesError::Unknown { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (partitions, conditions) = partitions_of(app, reader, owner, &resolved, Vec::new()).await?;
        Ok(Some(Holding {
            permit,
            partitions,
            conditions,
        }))
    }

    /// Every table that can be named. Those who share some are told that these were listed, whichever of them
    /// the query shows.
    async fn all(&self) -> Result<Vec<ListedTable>, ApiError> {
        let (app, reader) = (&self.app, &self.reader);
        let can_be_read = |known: &&Arc<DataType>| known.queryable && reader.reach().covers(&known.id);
        let built_in = app.types.registry().types().iter().filter(can_be_read);
        let mut listed: Vec<ListedTable> = built_in.map(|known| table(None, known)).collect();
        let own = app.types.all_own(reader.person()).await?;
        let own = own.live().map(|own| &own.data_type).filter(can_be_read);
        listed.extend(own.map(|own| table(None, own)));
        for (sharer, opened) in app.sharing.openings_for(reader.person()).await? {
            let shown = types_shown(app, sharer, &opened.openings, &[]).await?;
            let shown: Vec<Arc<DataType>> = shown.iter().filter_map(ListedType::made).collect();
            let mut shown = shown.iter().filter(can_be_read).peekable();
            if shown.peek().is_some() {
                reader.disclosures().note_listed(sharer, &opened);
            }
            listed.extend(shown.map(|shown| table(Some(sharer), shown)));
        }
        listed.sort_by(|one, other| (one.of, &one.name).cmp(&(other.of, &other.name)));
        Ok(listed)
    }
}

fn table(of: Option<PersonId>, data_type: &Arc<DataType>) -> ListedTable {
    let id = &data_type.id;
    let name = match id.definition() {
        Some(_) => id.to_string(),
        None => snake(id.as_str()),
    };
    ListedTable {
        of,
        name,
        partitions: vec![TypedPartition::of(Arc::clone(data_type))],
    }
}

impl fmt::Debug for Readings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Readings").finish_non_exhaustive()
    }
}

impl Holdings<GrantAuthority> for Readings {
    fn questions(&self) -> &Questions<GrantAuthority> {
        &self.app.questions
    }

    fn find<'a>(
        &'a self,
        of: Option<PersonId>,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Holding<GrantAuthority>>, DataFusionError>> {
        self.found(of, name).map_err(Unanswered::wrapped).boxed()
    }

    fn listed(&self) -> BoxFuture<'_, Result<Vec<ListedTable>, DataFusionError>> {
        self.all().map_err(Unanswered::wrapped).boxed()
    }

    fn usual_names(&self) -> Vec<String> {
        let types = self.app.types.registry().types().iter();
        let functions = QuestionFunction::ALL.map(|function| function.name().to_owned());
        types
            .map(|known| snake(known.id.as_str()))
            .chain(functions)
            .collect()
    }

    fn answer<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Prepared, DataFusionError>> {
        self.called(call).boxed()
    }
}

/// An error of the service, passed through the planner.
#[derive(Debug)]
pub(super) struct Unanswered(ApiError);

impl fmt::Display for Unanswered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("what the query reads is not available")
    }
}

impl Error for Unanswered {}

impl Unanswered {
    pub(super) fn wrapped(error: impl Into<ApiError>) -> DataFusionError {
        DataFusionError::External(Box::new(Self(error.into())))
    }

    /// The wrapped error, if there is one.
    pub(super) fn inside(error: DataFusionError) -> Result<ApiError, DataFusionError> {
        match error {
            DataFusionError::External(inner) => match inner.downcast::<Self>() {
                Ok(wrapped) => Ok(wrapped.0),
                Err(inner) => Err(DataFusionError::External(inner)),
            },
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
                Self::inside(*inner)
            }
            error => Err(error),
        }
    }
}
