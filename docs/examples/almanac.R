#!/usr/bin/env Rscript
# Records a weight, reads heart rates as a table, and asks for a week of steps. Needs ALMANAC, TOKEN and PERSON, and the packages arrow and jsonlite.

library(arrow)
library(jsonlite)

almanac <- Sys.getenv("ALMANAC")
person <- Sys.getenv("PERSON")
authorization <- c(Authorization = paste("Bearer", Sys.getenv("TOKEN")))

# An answer as a file, for whatever reads files.
ask <- function(question) {
  place <- tempfile()
  download.file(paste0(almanac, sprintf(question, person)), place, headers = authorization, mode = "wb", quiet = TRUE)
  place
}

# With an id of its own it counts once, however often it is sent. Any unit of mass will do.
record <- list(uuid = "01970000-0000-7000-8000-0000000000c3", start_date = "2024-06-14T07:00:00Z", value = 74, unit = "kg")
body <- tempfile()
writeLines(toJSON(record, auto_unbox = TRUE), body)
sent <- system2("curl", c("-sS", "--fail-with-body", "-H", shQuote(paste("Authorization:", authorization)),
                          "-H", shQuote("Content-Type: application/json"), "--data-binary", paste0("@", body),
                          shQuote(paste0(almanac, "/ingest/v1/record/Weight"))))
stopifnot(sent == 0)

hearts <- read_parquet(ask("/data/v0/%s/metric_samples?metric=HeartRate&start_time=2024-06-03&end_time=2024-06-10&output=parquet&columns=start_date,value"))
print(summary(hearts$value))

steps <- read_feather(ask("/data/v0/%s/metric_time_series?metric=StepCount&start_time=2024-06-03&end_time=2024-06-10&samprate=1d&output=arrow"))
print(as.data.frame(steps))
