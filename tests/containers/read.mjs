// SPDX-License-Identifier: MIT
// Reads Arrow and Parquet files with another library than the one that wrote them, and prints the rows of
// a column as JSON: a check of write.mjs, and of the tests that use it.
//
//   node read.mjs FILE COLUMN...
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import zlib from 'node:zlib'
import * as arrow from 'apache-arrow'
import * as parquet from 'parquet-wasm'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'

const command = (name, args) => ({
  encode: (bytes) => execFileSync(name, args, { input: bytes }),
  decode: (bytes) => execFileSync(name, [...args, '-d'], { input: bytes, maxBuffer: 2 ** 31 - 1 }),
})
arrow.compressionRegistry.set(arrow.CompressionType.ZSTD, command('zstd', ['-q', '-c']))
arrow.compressionRegistry.set(arrow.CompressionType.LZ4_FRAME, command('lz4', ['-q', '-c']))

const plain = (value) => value === null || value === undefined ? null
  : typeof value === 'bigint' ? Number(value)
    : typeof value === 'object' ? Array.from(value, plain) : value

const rowsOf = (table, column) => Array.from(table.getChild(column), plain)

async function readParquet(bytes, column) {
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
  const codec = parquetMetadata(buffer).row_groups[0]?.columns[0].meta_data.codec ?? 'UNCOMPRESSED'
  const table = arrow.tableFromIPC(parquet.readParquet(bytes).intoIPCStream())
  const found = { 'parquet-wasm': rowsOf(table, column) }
  if (['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'ZSTD'].includes(codec)) {
    const compressors = {
      GZIP: (input) => zlib.gunzipSync(input),
      ZSTD: (input) => execFileSync('zstd', ['-q', '-c', '-d'], { input: Buffer.from(input) }),
    }
    const objects = await parquetReadObjects({ file: buffer, columns: [column], ...(codec !== 'SNAPPY' && { compressors }) })
    found.hyparquet = objects.map((row) => plain(row[column]))
  }
  return found
}

const [file, column] = process.argv.slice(2)
const bytes = readFileSync(file)
const isParquet = bytes.subarray(0, 4).toString('latin1') === 'PAR1'
const found = isParquet ? await readParquet(bytes, column) : { arrow: rowsOf(arrow.tableFromIPC(bytes), column) }
console.log(JSON.stringify(found))
