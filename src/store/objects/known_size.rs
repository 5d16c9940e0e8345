//! Reads objects whose sizes are known, and tells one that was cut off from a store that fails. Knows
//! nothing of what they contain.

use std::ops::Range;

use bytes::Bytes;

use super::{ObjectStorage, failure, location};
use crate::store::errors::{StoreError, was_answered};

impl ObjectStorage {
    /// Reads a range of an object of so many `bytes`; one that has another size is damaged.
    pub async fn get_range_within(
        &self,
        path: &str,
        bytes: u64,
        range: Range<u64>,
    ) -> Result<Bytes, StoreError> {
        let error = match self.range(&location(path)?, range).await {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        let was_answered = was_answered(&error);
        let failed = failure(path)(error);
        // A store that is silent is silent about the size, too, and is waited for as long again.
        if !was_answered || !matches!(failed, StoreError::Unavailable { .. }) {
            return Err(failed);
        }
        // Stores answer alike to a range beyond the end and to a failure of their own.
        match self.size(path).await {
            Ok(found) if found != bytes => Err(StoreError::corrupt(format!(
                "object {path} differs from what was written"
            ))),
            _ => Err(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::store::faults::{Fault, Faults, FaultyStore, Operation};

    #[tokio::test]
    async fn a_store_that_answers_is_asked_for_the_size_and_a_silent_one_for_nothing_else() {
        let faults = Arc::new(Faults::default());
        let faulty = FaultyStore::new(Arc::new(InMemory::new()), Arc::clone(&faults));
        let store = ObjectStorage::over(Arc::new(faulty));
        let (path, content) = ("files/a", Bytes::from_static(b"0123456789"));
        store.put(path, content).await.unwrap();
        assert_eq!(store.get_range_within(path, 10, 2..5).await.unwrap(), "234");
        let cut_off = store.get_range_within(path, 20, 12..15).await;
        assert!(matches!(cut_off, Err(StoreError::Corrupt { .. })), "{cut_off:?}");
        let missing = store.get_range_within("files/b", 10, 2..5).await;
        assert!(matches!(missing, Err(StoreError::Missing { .. })), "{missing:?}");
        for (fault, bytes, is_damage) in [
            (Fault::Fail, 10, false),
            (Fault::Fail, 20, true),
            (Fault::Silence, 20, false),
        ] {
            faults.once(Operation::Get, fault);
            let failed = store.get_range_within(path, bytes, 2..5).await.unwrap_err();
            assert_eq!(failed.is_damage(), is_damage, "{fault:?} {bytes}: {failed}");
        }
    }
}
