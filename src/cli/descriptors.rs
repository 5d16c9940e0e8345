//! File descriptors: how many the system allows this process, and so how many connections.

/// Descriptors for everything except connections: the catalogue, objects that are read, spilled rows.
const KEPT_BACK: usize = 256;
/// The least connections, however few descriptors there are.
const LEAST: usize = 16;

/// The wanted number of connections, limited by the descriptors that are left for them: a process that runs
/// out of descriptors can open neither the catalogue nor an object, for anybody.
pub(super) fn connections(wanted: usize) -> usize {
    let Some(descriptors) = limit() else { return wanted };
    let room = descriptors.saturating_sub(KEPT_BACK).max(LEAST);
    if room < wanted {
        tracing::warn!(
            descriptors,
            connections = room,
            wanted,
            "fewer connections are taken: raise the limit of open files"
        );
    }
    wanted.min(room)
}

/// The soft limit that the system reports to every process.
fn limit() -> Option<usize> {
    read(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

fn read(limits: &str) -> Option<usize> {
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_counts() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max cpu time              unlimited            unlimited            seconds   \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(read(limits), Some(1024));
        assert_eq!(read("Max open files unlimited unlimited files"), None);
    }
}
