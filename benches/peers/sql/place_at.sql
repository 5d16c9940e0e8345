-- The last place that was known then, at most four hours old.
SELECT uuid::VARCHAR AS uuid, time, latitude, longitude, accuracy
FROM places
WHERE time <= $time::TIMESTAMPTZ AND time >= $time::TIMESTAMPTZ - INTERVAL 4 HOUR AND accuracy >= 0
ORDER BY time DESC, accuracy, uuid
LIMIT 1
