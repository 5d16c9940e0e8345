//! Removes, in the background, frames that have expired or may no longer be read.
//!
//! Knows when a frame is over; knows nothing of questions and answers.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::is_readable;
use crate::api::app::{App, AppState};
use crate::people::frames::FrameError;

/// The time between two searches for frames that have expired or may no longer be read.
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);

/// Removes frames that have expired or may no longer be read, until `stop` is called.
pub async fn sweep(app: AppState, stop: CancellationToken) {
    loop {
        if let Err(error) = sweep_once(&app).await {
            tracing::warn!(%error, "expired frames could not be removed; will try again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SWEEP_INTERVAL) => {}
        }
    }
}

async fn sweep_once(app: &App) -> Result<(), FrameError> {
    for (frame, is_over) in app.frames.everybodys().await? {
        let goes = is_over
            || is_readable(app, &frame)
                .await
                .is_ok_and(|is_readable| !is_readable);
        if !goes {
            continue;
        }
        match app.frames.discard(&frame).await {
            // Damage to what belongs to one person does not keep the frames of others.
            Err(FrameError::Store(error)) if error.is_damage() => {
                tracing::error!(frame = %frame.id, %error, "an expired frame stays; run `almanac check`");
            }
            // If another node was faster, the frame is gone as well.
            discarded => {
                discarded?;
            }
        }
    }
    Ok(())
}
