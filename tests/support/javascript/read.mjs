// Reads Arrow answers with the readers that JavaScript has, and says what each found.
//
//     node read.mjs FOLDER_OF_PACKAGES FILE...
//
// Prints a JSON list with one entry for each file and reader.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const arrow = require("apache-arrow");
const lz4 = require("lz4js");
const zstd = require("fzstd");
const flechette = await import(pathToFileURL(`${folder}/node_modules/@uwdata/flechette/dist/flechette.mjs`));

// Neither reader undoes compression by itself: whoever uses it says what does. Columns of eight bytes want to
// begin at a multiple of eight, which a copy does.
const codecs = {
  LZ4_FRAME: (data) => new Uint8Array(lz4.decompress(data)),
  ZSTD: (data) => new Uint8Array(zstd.decompress(data)),
};
for (const [name, decode] of Object.entries(codecs)) {
  arrow.compressionRegistry.set(arrow.CompressionType[name], { decode });
  flechette.setCompressionCodec(flechette.CompressionType[name], { decode });
}

const readers = {
  "apache-arrow": (bytes) => arrow.tableFromIPC(bytes),
  flechette: (bytes) => flechette.tableFromIPC(bytes, { useDate: false }),
};

const found = [];
for (const file of files) {
  for (const [reader, read] of Object.entries(readers)) {
    const table = read(readFileSync(file));
    const column = (name) => [...table.getChild(name)];
    const sources = column("source_properties");
    found.push({
      file,
      reader,
      rows: table.numRows,
      values: column("value").map(Number),
      ids: column("uuid").map(String),
      // Milliseconds since 1970, whatever the column counts.
      starts: column("start_date").map((moment) => Number(moment)),
      product: sources.length ? sources[0].productType : null,
    });
  }
}
console.log(JSON.stringify(found));
