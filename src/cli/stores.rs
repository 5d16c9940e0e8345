//! The object store as the settings have it, with the keys of people where what is stored is encrypted.

use std::sync::Arc;

use crate::store::objects::ObjectStorage;
use crate::store::sealing::{self, MasterKeys, PersonKeys};

use super::Failed;
use super::settings::Settings;

/// The store for whoever reads and writes what people have.
pub struct OpenedStore {
    pub objects: ObjectStorage,
    pub keys: Option<Arc<PersonKeys>>,
}

pub async fn open(settings: &Settings) -> Result<OpenedStore, Failed> {
    let objects = ObjectStorage::open(&settings.objects).map_err(Failed::from_error)?;
    let Some(encryption) = &settings.encryption else {
        sealing::refuse_marked(&objects)
            .await
            .map_err(Failed::from_error)?;
        return Ok(OpenedStore { objects, keys: None });
    };
    let masters = MasterKeys::read(&encryption.master).map_err(Failed::from_error)?;
    let place = ObjectStorage::open(&encryption.keys).map_err(Failed::from_error)?;
    let keys = Arc::new(PersonKeys::new(place, masters));
    sealing::mark(&objects).await.map_err(Failed::from_error)?;
    Ok(OpenedStore {
        objects: sealing::over(objects, &keys),
        keys: Some(keys),
    })
}
